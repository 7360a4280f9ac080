//! The plan of a launch on Unix.

use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::path::PathBuf;

use crate::process::command::Command;
use crate::process::error::{Cause, LaunchError, Object, Step};
use crate::process::inherit::Inherit;

/// Where a program without a slash is looked for when the child has no `PATH`: glibc's `_CS_PATH` with the order
/// that its `execvp` has used since 2.24.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Longer names cannot exist on any file system of Linux (`NAME_MAX`), so no directory is asked for them.
const NAME_MAX: usize = 255;
/// Longer paths are refused (`PATH_MAX`, with the NUL that ends them).
const PATH_MAX: usize = 4096;

/// What the parent brings to one launch.
#[derive(Debug)]
pub(crate) struct Parent {
    /// The parent's environment as it was captured for this launch.
    pub(crate) environment: Environment,
    /// The descriptors that become the child's 0, 1 and 2.
    pub(crate) streams: [i32; 3],
}

/// Everything about one launch.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// The paths to execute, in order, until one works.
    pub(crate) candidates: Strings,
    pub(crate) argv: Strings,
    pub(crate) environment: Cow<'a, Strings>,
    pub(crate) directory: Option<CString>,
    pub(crate) descriptors: Descriptors,
}

impl<'a> Plan<'a> {
    /// Resolves a command against the parent that launches it.
    pub(crate) fn resolve(command: &Command, parent: &'a Parent) -> Result<Plan<'a>, LaunchError> {
        let fail =
            |object, why| LaunchError::new(Step::Resolve, command.get_program(), object, Cause::Invalid(why));
        let program = bytes(command.get_program());
        if program.contains(&0) {
            return Err(fail(Object::Program(command.get_program().into()), "it contains a NUL byte"));
        }

        let mut argv = Strings::default();
        argv.push(&[program]);
        for (index, arg) in command.args.iter().enumerate() {
            if bytes(arg).contains(&0) {
                return Err(fail(Object::Argument(index), "it contains a NUL byte"));
            }
            argv.push(&[bytes(arg)]);
        }

        let environment = environment(command, parent)
            .map_err(|name| fail(Object::Variable(name), "its name or value contains a NUL byte"))?;

        let directory = match &command.directory {
            None => None,
            Some(path) => Some(
                CString::new(bytes(path.as_os_str()))
                    .map_err(|_| fail(Object::Directory(PathBuf::from(path)), "it contains a NUL byte"))?,
            ),
        };

        let mut pairs: Vec<(i32, i32)> = Vec::with_capacity(3 + command.passed.len());
        pairs.extend((0..).zip(parent.streams).map(|(target, source)| (source, target)));
        pairs.extend(command.passed.iter().filter_map(|passed| passed.pair()));

        Ok(Plan {
            candidates: candidates(program, search_path(command, parent)),
            argv,
            environment,
            directory,
            descriptors: Descriptors::new(pairs, command.inherit),
        })
    }
}

/// The bytes of a string as the system takes them.
fn bytes(string: &OsStr) -> &[u8] {
    string.as_encoded_bytes()
}

/// The child's environment: the parent's with the command's changes. `Err` names a variable with a NUL byte.
fn environment<'a>(command: &Command, parent: &'a Parent) -> Result<Cow<'a, Strings>, OsString> {
    let captured = &parent.environment;
    if command.variables.is_empty() && !command.clear_environment {
        return Ok(Cow::Borrowed(&captured.block));
    }
    let mut block = Strings::default();
    if !command.clear_environment {
        for (name, value) in captured.iter() {
            // The few changes, sorted, are looked through for each variable rather than hashed.
            if !command.variables.keys().any(|changed| bytes(changed.as_os_str()) == name) {
                block.push(&[name, b"=", value]);
            }
        }
    }
    for (name, value) in &command.variables {
        let Some(value) = value else { continue };
        let name = name.as_os_str();
        if bytes(name).contains(&0) || bytes(value).contains(&0) {
            return Err(name.to_owned());
        }
        block.push(&[bytes(name), b"=", bytes(value)]);
    }
    Ok(Cow::Owned(block))
}

/// The `PATH` that the child will have: as in std it is the child's that finds the program.
fn search_path<'a>(command: &'a Command, parent: &'a Parent) -> Option<&'a [u8]> {
    match command.variables.get(&OsStr::new("PATH").into()) {
        Some(change) => change.as_deref().map(bytes),
        None if command.clear_environment => None,
        None => parent.environment.iter().find(|(name, _)| *name == b"PATH").map(|(_, value)| value),
    }
}

/// The paths to try for a program, by the rules of `execvp(3)`: with a slash, itself alone; without, in each
/// directory of `PATH`, where an empty element stands for the working directory.
fn candidates(program: &[u8], path: Option<&[u8]>) -> Strings {
    let mut list = Strings::default();
    if program.is_empty() || program.contains(&b'/') || program.len() > NAME_MAX {
        list.push(&[program]);
        return list;
    }
    for directory in path.unwrap_or(DEFAULT_PATH).split(|&byte| byte == b':') {
        match directory {
            [] => list.push(&[program]),
            // No path is longer than PATH_MAX; such a directory is passed over, as execvp(3) does.
            _ if directory.len() + 1 + program.len() >= PATH_MAX => {}
            // The bytes of a variable of the parent cannot hold a NUL; those of the command were checked.
            _ => list.push(&[directory, b"/", program]),
        }
    }
    list
}

/// An environment, already in the form in which the system takes it: most launches hand it on as it is.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    block: Strings,
    /// The length of each variable's name.
    names: Vec<usize>,
}

impl Environment {
    /// Copies it variable by variable, so that each is freed before the next is looked at.
    pub(crate) fn capture(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
        let variables = variables.into_iter();
        let count = variables.size_hint().0;
        let mut environment = Environment {
            block: Strings::with_capacity(count + 1, count * 48),
            names: Vec::with_capacity(count),
        };
        for (name, value) in variables {
            environment.block.push(&[bytes(&name), b"=", bytes(&value)]);
            environment.names.push(name.len());
        }
        environment
    }

    /// Names and values.
    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let Strings { bytes, starts } = &self.block;
        let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
        starts.iter().zip(ends).zip(&self.names).map(|((&start, end), &name)| {
            // Between the two stand the equals sign and, at the end, the NUL.
            (&bytes[start..start + name], &bytes[start + name + 1..end - 1])
        })
    }
}

/// NUL-terminated strings in one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strings {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Strings {
    fn with_capacity(strings: usize, bytes: usize) -> Strings {
        Strings { bytes: Vec::with_capacity(bytes), starts: Vec::with_capacity(strings) }
    }

    /// Appends one string made of these pieces, which hold no NUL.
    fn push(&mut self, pieces: &[&[u8]]) {
        self.starts.push(self.bytes.len());
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        self.bytes.push(0);
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Where each string starts in [`bytes`](Strings::bytes).
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// All strings, each with its NUL.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn get(&self, index: usize) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes[*self.starts.get(index)?..]).ok()
    }
}

/// A range of descriptor numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// What happens to the child's descriptor table.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// Which descriptor of the parent (first) the child sees under which number (second).
    pub(crate) pairs: Vec<(i32, i32)>,
    /// Whether the child keeps what is not named here.
    pub(crate) inherit: Inherit,
    /// One above the highest source: from here up nothing is needed of the parent.
    pub(crate) above: u32,
    /// Closed before the moves, so that the numbers that these need are free. Empty if they need none.
    pub(crate) close_before: Vec<Gap>,
    pub(crate) moves: Vec<Move>,
    /// How many sources the moves lift.
    pub(crate) lifts: usize,
    /// Closed after the moves: all but the targets.
    pub(crate) close_after: Vec<Gap>,
    /// The numbers that the child will have, in order.
    pub(crate) targets: Vec<i32>,
}

impl Descriptors {
    pub(crate) fn new(pairs: Vec<(i32, i32)>, inherit: Inherit) -> Descriptors {
        let moves = fd_moves(&pairs);
        let lifts = moves.iter().filter(|step| matches!(step, Move::Lift { .. })).count();
        let mut targets: Vec<i32> = pairs.iter().map(|pair| pair.1).collect();
        targets.sort_unstable();
        targets.dedup();
        let above = pairs.iter().map(|pair| pair.0 + 1).max().unwrap_or(0) as u32;
        let (close_before, close_after) = match inherit {
            Inherit::All => (Vec::new(), Vec::new()),
            Inherit::Named if lifts == 0 => (Vec::new(), gaps(&targets)),
            Inherit::Named => {
                let mut used: Vec<i32> = pairs.iter().flat_map(|pair| [pair.0, pair.1]).collect();
                used.sort_unstable();
                (gaps(&used), gaps(&targets))
            }
        };
        Descriptors { pairs, inherit, above, close_before, moves, lifts, close_after, targets }
    }
}

/// The numbers between those of a sorted list, and all above it.
fn gaps(sorted: &[i32]) -> Vec<Gap> {
    let mut list = Vec::with_capacity(2);
    let mut next = 0;
    for &number in sorted {
        let number = number as u32;
        if number > next {
            list.push(Gap { first: next, last: number - 1 });
        }
        next = next.max(number + 1);
    }
    list.push(Gap { first: next, last: u32::MAX });
    list
}

/// One step of putting descriptors in their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// Duplicate `source`, whose number another move needs, to any free number that is no target, with
    /// close-on-exec. Lifts are numbered in the order in which they stand.
    Lift { source: i32, pair: usize },
    /// Put what has this number in the place of `target`.
    Place { source: i32, target: i32, pair: usize },
    /// Put the lift of this index in the place of `target`.
    PlaceLifted { lift: usize, target: i32, pair: usize },
    /// It is in its place already: only the close-on-exec flag is cleared.
    Keep { number: i32, pair: usize },
}

impl Move {
    /// The index of the pair that this step serves.
    pub(crate) fn pair(self) -> usize {
        match self {
            Move::Lift { pair, .. }
            | Move::Place { pair, .. }
            | Move::PlaceLifted { pair, .. }
            | Move::Keep { pair, .. } => pair,
        }
    }
}

/// The steps that make each pair's second number, all at once, what its first was before.
///
/// Two passes: first every source that another pair overwrites is lifted out of the way, then everything is put in
/// its place. Targets are distinct; a source may serve many.
pub(crate) fn fd_moves(pairs: &[(i32, i32)]) -> Vec<Move> {
    let mut lifted: Vec<i32> = Vec::new();
    let mut moves = Vec::with_capacity(pairs.len() + 1);
    for (pair, &(source, target)) in pairs.iter().enumerate() {
        let overwritten =
            source != target && pairs.iter().any(|other| other.1 == source && other.0 != source);
        if overwritten && !lifted.contains(&source) {
            lifted.push(source);
            moves.push(Move::Lift { source, pair });
        }
    }
    for (pair, &(source, target)) in pairs.iter().enumerate() {
        moves.push(if source == target {
            Move::Keep { number: source, pair }
        } else if let Some(lift) = lifted.iter().position(|&one| one == source) {
            Move::PlaceLifted { lift, target, pair }
        } else {
            Move::Place { source, target, pair }
        });
    }
    moves
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn parent(environment: &[(&str, &str)]) -> Parent {
        Parent {
            environment: Environment::capture(
                environment.iter().map(|(name, value)| (name.into(), value.into())),
            ),
            streams: [0, 1, 2],
        }
    }

    fn list(strings: &Strings) -> Vec<String> {
        (0..strings.len()).map(|i| strings.get(i).unwrap().to_str().unwrap().to_owned()).collect()
    }

    /// A descriptor table: what is open under each number, and whether it is closed by exec.
    type Table = BTreeMap<i32, (i32, bool)>;

    /// Does to a table what the child does to its own, and gives what is left after exec.
    fn child(mut table: Table, plan: &Descriptors) -> Table {
        let close = |table: &mut Table, gaps: &[Gap]| {
            table.retain(|&number, _| {
                !gaps.iter().any(|gap| (gap.first..=gap.last).contains(&(number as u32)))
            });
        };
        close(&mut table, &plan.close_before);
        let mut lifted = Vec::new();
        for &step in &plan.moves {
            match step {
                Move::Lift { source, .. } => {
                    let free = (3..).find(|n| !table.contains_key(n) && !plan.targets.contains(n)).unwrap();
                    table.insert(free, (table[&source].0, true));
                    lifted.push(free);
                }
                Move::Place { source, target, .. } => {
                    assert_ne!(source, target);
                    table.insert(target, (table[&source].0, false));
                }
                Move::PlaceLifted { lift, target, .. } => {
                    table.insert(target, (table[&lifted[lift]].0, false));
                }
                Move::Keep { number, .. } => {
                    table.entry(number).and_modify(|entry| entry.1 = false);
                }
            }
        }
        assert_eq!(lifted.len(), plan.lifts);
        close(&mut table, &plan.close_after);
        table.retain(|_, entry| !entry.1);
        table
    }

    fn check(pairs: &[(i32, i32)], others: &[i32]) {
        let mut table = Table::new();
        for &number in others.iter().chain(pairs.iter().map(|(source, _)| source)) {
            table.insert(number, (number + 1000, number % 2 == 0));
        }
        let plan = Descriptors::new(pairs.to_vec(), Inherit::Named);
        assert!(pairs.iter().all(|&(source, _)| (source as u32) < plan.above));
        let wanted: Table = pairs.iter().map(|&(s, t)| (t, (s + 1000, false))).collect();
        assert_eq!(child(table.clone(), &plan), wanted, "{pairs:?}");

        let plan = Descriptors::new(pairs.to_vec(), Inherit::All);
        let mut wanted: Table = table.iter().filter(|(_, entry)| !entry.1).map(|(&n, &e)| (n, e)).collect();
        wanted.extend(pairs.iter().map(|&(s, t)| (t, (s + 1000, false))));
        assert_eq!(child(table, &plan), wanted, "{pairs:?} with all");
    }

    #[test]
    fn every_assignment_of_up_to_six_sources_to_three_streams() {
        for a in 0..6 {
            for b in 0..6 {
                for c in 0..6 {
                    check(&[(a, 0), (b, 1), (c, 2)], &[0, 1, 2, 3, 4, 5, 6, 9]);
                }
            }
        }
    }

    #[test]
    fn every_permutation_of_six() {
        fn permute(rest: &mut Vec<i32>, chosen: &mut Vec<i32>) {
            if rest.is_empty() {
                let pairs: Vec<_> = chosen.iter().copied().zip(0..).collect();
                check(&pairs, &[7]);
                // A subset of it as well, so that chains without a cycle are there too.
                for skip in 0..pairs.len() {
                    let mut fewer = pairs.clone();
                    fewer.remove(skip);
                    check(&fewer, &[0, 3, 6, 8]);
                }
            }
            for index in 0..rest.len() {
                chosen.push(rest.remove(index));
                permute(rest, chosen);
                rest.insert(index, chosen.pop().unwrap());
            }
        }
        permute(&mut (0..6).collect(), &mut Vec::new());
    }

    proptest! {
        #[test]
        fn any_sources_to_any_targets(
            targets in proptest::collection::btree_set(0..40i32, 0..12),
            sources in proptest::collection::vec(0..40i32, 12),
            others in proptest::collection::vec(0..60i32, 0..20),
        ) {
            let pairs: Vec<_> = sources.into_iter().zip(targets).collect();
            check(&pairs, &others);
        }
    }

    #[test]
    fn a_plain_launch_moves_nothing_and_closes_once() {
        let plan = Descriptors::new(vec![(0, 0), (1, 1), (2, 2)], Inherit::Named);
        assert_eq!((plan.above, plan.lifts), (3, 0));
        assert_eq!(plan.close_before, []);
        assert_eq!(plan.close_after, [Gap { first: 3, last: u32::MAX }]);
        assert!(plan.moves.iter().all(|step| matches!(step, Move::Keep { .. })));
    }

    #[test]
    fn the_environment_is_the_parents_with_the_changes() {
        let parent = parent(&[("A", "1"), ("B", "2"), ("=odd", "3"), ("C", "")]);
        let mut command = Command::new("x");
        command.env("B", "two").env_remove("A").env("D", "4");
        let plan = Plan::resolve(&command, &parent).unwrap();
        assert_eq!(list(&plan.environment), ["=odd=3", "C=", "B=two", "D=4"]);
        command.env_clear().env("E", "5");
        let plan = Plan::resolve(&command, &parent).unwrap();
        assert_eq!(list(&plan.environment), ["E=5"]);
    }

    #[test]
    fn the_childs_path_finds_the_program() {
        let parent = parent(&[("PATH", "/a::/b/")]);
        let find = |command: &Command| list(&Plan::resolve(command, &parent).unwrap().candidates);
        assert_eq!(find(&Command::new("x")), ["/a/x", "x", "/b//x"]);
        assert_eq!(find(&Command::new("./x")), ["./x"]);
        assert_eq!(find(&Command::new("")), [""]);
        assert_eq!(find(Command::new("x").env("PATH", "/c")), ["/c/x"]);
        assert_eq!(find(Command::new("x").env("PATH", "")), ["x"]);
        assert_eq!(find(Command::new("x").env_remove("PATH")), ["/bin/x", "/usr/bin/x"]);
        assert_eq!(find(Command::new("x").env_clear()), ["/bin/x", "/usr/bin/x"]);
        let long = "x".repeat(300);
        assert_eq!(find(&Command::new(&long)), [long]);
    }

    #[test]
    fn a_nul_byte_is_refused_by_name() {
        let of = |command: &Command| Plan::resolve(command, &parent(&[])).unwrap_err();
        assert_eq!(*of(&Command::new("a\0")).object(), Object::Program("a\0".into()));
        assert_eq!(*of(Command::new("a").args(["b", "c\0"])).object(), Object::Argument(1));
        assert_eq!(*of(Command::new("a").env("N", "\0")).object(), Object::Variable("N".into()));
        assert_eq!(*of(Command::new("a").env("N\0", "")).object(), Object::Variable("N\0".into()));
        let error = of(Command::new("a").current_dir("d\0"));
        assert_eq!(*error.object(), Object::Directory("d\0".into()));
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
}
