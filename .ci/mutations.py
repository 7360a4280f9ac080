#!/usr/bin/env python3
"""Weakens every memory ordering and every compare-exchange of the modelled types, one at a time, in a copy of
the tree, and says which model noticed. Fails if one was noticed by none.

usage: mutations.py [PART-OF-A-FILE-NAME]
"""

import os, re, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = ["src/engine/waker.rs", "src/engine/course.rs", "src/engine/slab.rs", "src/engine/cell.rs", "src/engine/handle.rs",
         "src/process/sys/linux/slot_map.rs", "src/process/sys/linux/handover.rs", "src/sync/room_lock/queue.rs"]

# Changes that are not of the form that is generated below: (file, what is there, what is put there, what it does).
BY_HAND = [
    ("src/engine/slab.rs", "((head >> 32) + 1) << 32", "(head >> 32) << 32", "no tag on the idle stack"),
    ("src/engine/waker.rs", "self.state.compare_exchange(IDLE, REGISTERING, Acquire, Acquire).is_err()",
     "{ let busy = self.state.load(Acquire) != IDLE; self.state.store(REGISTERING, Release); busy }",
     "register without compare-exchange"),
    ("src/engine/waker.rs", "self.state.compare_exchange(REGISTERING, IDLE, Release, Relaxed).is_err()",
     "{ self.state.store(IDLE, Release); false }", "end of register without compare-exchange"),
    ("src/engine/cell.rs",
     "cell.state.compare_exchange(RUNNING | BOTH, ABANDONED | COMPLETER, Release, Relaxed).is_ok()",
     "{ let running = cell.state.load(Acquire) == RUNNING | BOTH; "
     "if running { cell.state.store(ABANDONED | COMPLETER, Release) }; running }",
     "abandon without compare-exchange"),
    ("src/engine/cell.rs", "cell.state.fetch_and(!FUTURE, AcqRel) & COMPLETER != 0", 
     "cell.state.load(Acquire) & COMPLETER != 0", "the future lets go without saying so"),
    ("src/engine/cell.rs", "cell.state.fetch_and(!COMPLETER, AcqRel) & FUTURE != 0",
     "cell.state.load(Acquire) & FUTURE != 0", "the completer lets go without saying so"),
    ("src/engine/pool.rs", "                let call = state.call(self.limit);\n                drop(state);",
     "                let call = Call::Nobody;\n                drop(state);", "a worker that leaves work behind wakes nobody"),
    ("src/engine/pool.rs", "while state.woken == 0 && !state.shutdown {", "while state.woken == 0 {",
     "a worker sleeps though the pool has been shut down"),
    ("src/engine/pool.rs", "if state.sleeping > 0 { state.call(self.limit) } else { Call::Nobody }", "Call::Nobody",
     "an operation is left to a worker that could not start"),
    ("src/fs/futures.rs", "late = cell.take_waker();", "late = None::<std::task::Waker>;", "an idle cell keeps a waker"),
    ("src/engine/pool.rs", "            Call::Wake => self.work.notify_one(),", "            Call::Wake => {}",
     "nobody is woken"),
    ("src/engine/pool.rs", "self.looking > 0 {", "self.looking > 0 || self.sleeping == 1 {", "a lone sleeper is not woken"),
    ("src/engine/pool.rs", "            state.looking -= 1;\n            if state.shutdown {",
     "            if state.shutdown {", "a sleeper still counts as looking"),
    ("src/engine/list.rs", "links(prev, |links| links.next = next);", "let _ = prev;", "unlinking keeps the forward link"),
    ("src/engine/list.rs", "links(next, |links| links.prev = prev);", "let _ = next;", "unlinking keeps the backward link"),
    ("src/engine/course.rs", "fetch_or(CANCELLED, Relaxed);\n        fence(SeqCst);", "fetch_or(CANCELLED, Relaxed);",
     "who cancels may miss the step"),
    ("src/engine/course.rs", "fence(SeqCst);\n        self.is_cancelled()", "self.is_cancelled()",
     "who begins a step may miss that it is cancelled"),
    ("src/engine/direct.rs", "if !course.issued() {", "if { course.issued(); true } {", "a step's early end is lost"),
    ("src/engine/direct.rs", "Arrival::First => return None,", "Arrival::First => {}",
     "a step goes on while its call has not returned"),
    ("src/engine/direct.rs", "if cell.cell().course.issued_and_ended() {", "cell.cell().course.issued_and_ended(); {",
     "a cell is given back whose step's end has yet to be heard of"),
    ("src/engine/direct.rs", "            shared.untold.fetch_sub(1, Relaxed);\n            give_back(shared, cell);\n            return None;",
     "            return None;", "a cell of which the port heard late is lost"),
    ("src/engine/direct.rs", "cell.cell().requeue();", "cell.cell().course.clear();",
     "an operation in the pool's list is not marked as queued"),
    ("src/engine/cell.rs", "self.course.clear();\n        self.state.store(QUEUED", "self.state.store(QUEUED",
     "an operation handed on still counts as the system's"),
    ("src/engine/pool.rs", "if !cell.cell().is_queued() {", "if false {", "a running operation is unlinked"),
    ("src/sync/room_lock.rs", "if !room || !self.queue.is_empty() {", "if !room {", "newcomers join though somebody waits"),
    ("src/sync/room_lock.rs", "=> this == that,", "=> { let _ = (this, that); true }", "two rooms share"),
    ("src/sync/room_lock.rs", "(Entry::Alone, _) | (_, Entry::Alone) => false,",
     "(Entry::Alone, _) | (_, Entry::Alone) => self == other,", "two are alone together"),
    ("src/sync/room_lock.rs", "if self.inside > 0 {", "if false {", "whoever leaves hands over"),
    ("src/sync/room_lock.rs", "let ticket = self.queue.pop()?;", "let ticket: Ticket = None?;", "nobody hands over"),
    ("src/sync/room_lock.rs", "self.inside = ticket.holders();", "self.inside = 1;", "a ticket counts as one"),
    ("src/sync/room_lock.rs", "self.open = ticket.entry();", "", "a ticket does not say who is inside"),
    ("src/sync/room_lock/queue.rs", "self.rooms.iter().find(|&place| entry_of(place).shares(entry))",
     "{ let _ = entry; None }", "each waiter has a ticket"),
    ("src/sync/room_lock/queue.rs", "links(last, |links| links.behind[WHICH] = Some(place));\n                Some((first, place))",
     "links(place, |links| links.behind[WHICH] = Some(first));\n                Some((place, last))", "a ticket is put in front"),
    ("src/sync/room_lock/queue.rs", "links.holders += 1;", "", "only the first holder counts"),
    ("src/sync/room_lock/queue.rs", "next = links(place, |links| links.beside);", "next = None;",
     "only the first holder is told"),
    ("src/sync/room_lock/queue.rs", "let room = self.rooms.pop();", "let room = Some(first);",
     "a ticket can be joined after it was served"),
    ("src/sync/room_lock/queue.rs", "thread.wake();", "drop(thread);", "nobody is woken"),
]
# What no model can notice: (file, a part of the line, the weaker ordering).
UNSEEN = [
    # Who hears of the end late takes its bit off the state after this thread has set it. loom places a read-modify-write
    # after every other that it has run before, ordered or not; a processor need not.
    ("src/engine/course.rs", "fetch_or(ISSUED | ENDED, Release)", "Relaxed"),
]
WEAKER = {"AcqRel": ["Acquire", "Release"], "Acquire": ["Relaxed"], "Release": ["Relaxed"]}


def code_lines(text):
    """The lines that ship: no comments, no imports, no tests."""
    # A test's module ends them; what a model alone calls may stand among them.
    shipped = re.split(r"\n#\[cfg\(all\(test[^\n]*\n(?:pub\(\w+\) )?mod ", text)[0]
    return [(n, line) for n, line in enumerate(shipped.split("\n"))
            if not line.strip().startswith("//") and "use " not in line]


def models_of(path):
    """The part of the models' names that selects those of a file."""
    if path.startswith(("src/engine/", "src/fs/")):
        return "engine::models"
    if path.startswith("src/sync/room_lock"):
        return "room_lock::models"
    return os.path.basename(path).removesuffix(".rs") + "::models"


def mutants():
    for path in FILES:
        text = open(os.path.join(ROOT, path)).read()
        lines = text.split("\n")
        for n, line in code_lines(text):
            # `Release` is also a type of the cell's: an ordering is an argument of an access.
            if not re.search(r"\.(load|store|swap|fetch_\w+|compare_exchange\w*)\(", line):
                continue
            for match in re.finditer(r"\b(AcqRel|Acquire|Release)\b", line):
                for weak in WEAKER[match.group(1)]:
                    if any(path == file and part in line and weak == to for file, part, to in UNSEEN):
                        continue
                    changed = lines.copy()
                    changed[n] = line[:match.start()] + weak + line[match.end():]
                    yield path, f"{path}:{n + 1}: {match.group(1)} to {weak}: {line.strip()}", "\n".join(changed)
    for path, old, new, what in BY_HAND:
        text = open(os.path.join(ROOT, path)).read()
        if text.count(old) < 1:
            sys.exit(f"{path}: the text of the mutation '{what}' is not there any more: {old}")
        yield path, f"{path}: {what}", text.replace(old, new, 1)


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    folder = tempfile.mkdtemp(prefix="haft-mutations-")
    tree = os.path.join(folder, "tree")
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("target", ".git"))
    env = dict(os.environ, RUSTFLAGS="--cfg loom -A warnings", CARGO_TARGET_DIR=os.path.join(folder, "target"),
               RUST_BACKTRACE="0")
    command = ["cargo", "test", "-p", "haft", "--lib", "--release"]
    survivors = 0
    try:
        for path, name, text in mutants():
            if only not in path:
                continue
            place = os.path.join(tree, path)
            original = open(place).read()
            open(place, "w").write(text)
            try:
                build = subprocess.run(command + ["--no-run"], cwd=tree, env=env, capture_output=True, text=True)
                if build.returncode != 0:
                    print(f"does not build  {name}\n{build.stderr[-2000:]}", flush=True)
                    survivors += 1
                    continue
                try:
                    run = subprocess.run(command + [models_of(path)], cwd=tree, env=env, capture_output=True, text=True,
                                         timeout=600)
                    caught = sorted(set(re.findall(r"test [\w:]*models::(\w+) \.\.\. FAILED", run.stdout)))
                    if run.returncode != 0 and not caught:
                        caught = ["(the test process died)"]
                except subprocess.TimeoutExpired:
                    caught = ["(a model that does not end)"]
            finally:
                open(place, "w").write(original)
            if caught:
                print(f"caught    {name}\n          by {', '.join(caught)}", flush=True)
            else:
                survivors += 1
                print(f"SURVIVED  {name}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{survivors} mutations survived")
    sys.exit(survivors != 0)


main()
