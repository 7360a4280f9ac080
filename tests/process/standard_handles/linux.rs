//! On Linux: whichever numbers they have in the parent, and whichever of the low numbers are closed there.

use haft::process::{Command, Inherit, Stdio};
use haft_tests::{Dice, Id, id, id_of, isolated, open_descriptors};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

/// Where one stream of the child comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Inherit,
    Null,
    /// The parent's descriptor of that number, given away.
    Fd(RawFd),
}

const SOURCES: [From; 8] =
    [From::Inherit, From::Null, From::Fd(0), From::Fd(1), From::Fd(2), From::Fd(3), From::Fd(4), From::Fd(5)];

/// The parent's side: six files whose descriptors can be laid over the numbers 0 to 5, and this process's own
/// standard handles kept safe meanwhile, far above.
struct Stage {
    files: Vec<OwnedFd>,
    saved: Vec<OwnedFd>,
    null: Id,
    report: PathBuf,
    _folder: tempfile::TempDir,
    wrong: Vec<String>,
    launches: usize,
}

/// A duplicate at a number of at least `from` that no child inherits.
fn high(fd: RawFd, from: RawFd) -> OwnedFd {
    // SAFETY: duplicates an open descriptor; the new number belongs to nobody else.
    unsafe {
        let n = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, from);
        assert!(n >= from);
        OwnedFd::from_raw_fd(n)
    }
}

impl Stage {
    fn new() -> Stage {
        // What the library opens once and keeps, it has after this.
        Command::new(haft_tests::kid!()).args(["exit", "0"]).status().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let files = (0..6)
            .map(|n| high(File::create(folder.path().join(n.to_string())).unwrap().as_raw_fd(), 100))
            .collect();
        let saved = (0..3).map(|fd| high(fd, 200)).collect();
        let null = id(&File::open("/dev/null").unwrap());
        let report = folder.path().join("report");
        Stage { files, saved, null, report, _folder: folder, wrong: Vec::new(), launches: 0 }
    }

    /// Lays the six files over the numbers 0 to 5, but for those in the set `closed`.
    fn lay(&self, closed: u32, cloexec: impl Fn(RawFd) -> bool) {
        for n in 0..6 {
            // SAFETY: this process runs this one test, and nothing in it uses 0 to 5 while the stage stands.
            unsafe {
                if closed & 1 << n != 0 {
                    libc::close(n);
                } else if cloexec(n) {
                    libc::dup3(self.files[n as usize].as_raw_fd(), n, libc::O_CLOEXEC);
                } else {
                    libc::dup2(self.files[n as usize].as_raw_fd(), n);
                }
            }
        }
    }

    fn stdio(&self, from: From, own: bool) -> Stdio {
        match from {
            From::Inherit => Stdio::inherit(),
            From::Null => Stdio::null(),
            // SAFETY: laid there by `lay`, and owned by nobody else; the next `lay` expects it closed or not.
            From::Fd(n) if own => Stdio::from(unsafe { OwnedFd::from_raw_fd(n) }),
            From::Fd(n) => {
                // SAFETY: open until the next `lay`.
                let fd = unsafe { BorrowedFd::borrow_raw(n) };
                Stdio::from(fd.try_clone_to_owned().unwrap())
            }
        }
    }

    fn expected(&self, streams: [From; 3], closed: u32) -> BTreeMap<RawFd, Id> {
        let mut want = BTreeMap::new();
        for (n, from) in streams.into_iter().enumerate() {
            let id = match from {
                From::Inherit if closed & 1 << n != 0 => continue,
                From::Inherit => id(&self.files[n]),
                From::Null => self.null,
                From::Fd(k) => id(&self.files[k as usize]),
            };
            want.insert(n as RawFd, id);
        }
        want
    }

    /// Launches, compares what the child has with `want`, and what the parent has after it with what it had.
    fn launch(&mut self, kid: &mut Command, want: &BTreeMap<RawFd, Id>, what: &dyn Fn() -> String) {
        self.launches += 1;
        kid.arg("expect").args(want.iter().map(|(fd, id)| format!("{fd}={id}")));
        kid.env("KID_REPORT", &self.report);
        let before: Vec<_> = open_descriptors().into_iter().map(|fd| (fd, id_of(fd))).collect();
        let result = kid.spawn().and_then(|mut c| c.wait());
        let after: Vec<_> = open_descriptors().into_iter().map(|fd| (fd, id_of(fd))).collect();
        match result {
            Ok(status) if status.success() => {}
            Ok(status) => {
                let got = std::fs::read_to_string(&self.report).unwrap_or_default();
                self.wrong.push(format!("{}: {status}; wanted {want:?}, the child has {got}", what()));
            }
            Err(e) => self.wrong.push(format!("{}: {e}", what())),
        }
        if before != after {
            self.wrong.push(format!("{}: the parent had {before:?} and has {after:?}", what()));
        }
    }

    /// Takes the stage down and says what was wrong. Panics only here, where there is a stream to say it on.
    fn end(self) {
        for n in 0..6 {
            // SAFETY: as in `lay`.
            unsafe {
                match self.saved.get(n as usize) {
                    Some(saved) => libc::dup2(saved.as_raw_fd(), n),
                    None => libc::close(n),
                };
            }
        }
        println!("{} launches", self.launches);
        let wrong = &self.wrong;
        assert!(wrong.is_empty(), "{} of {} wrong, such as\n{}", wrong.len(), self.launches, {
            wrong.iter().take(10).cloned().collect::<Vec<_>>().join("\n")
        });
    }
}

// The pidfd of a clone that shares the table lies there too, and if 0 is closed, under 0. Fails when a closed standard
// handle that is inherited is looked for only once the child is made.
#[test]
fn the_childs_own_pidfd_is_not_its_standard_input() {
    isolated!({
        let mut stage = Stage::new();
        for closed in [0b001, 0b010, 0b100, 0b111] {
            stage.lay(closed, |_| false);
            let want = stage.expected([From::Inherit; 3], closed);
            stage.launch(&mut Command::new(haft_tests::kid!()), &want, &|| format!("closed {closed:03b}"));
        }
        stage.end();
    });
}

fn usable(from: From, closed: u32) -> bool {
    !matches!(from, From::Fd(n) if closed & 1 << n != 0)
}

/// Every assignment of the three streams to the parent's 0 to 5, to `inherit` and to `null`, with the closed sets
/// that `part` of `parts` holds. A source that two streams share is duplicated, any other is given away.
fn every_permutation(part: u32, parts: u32) {
    let mut stage = Stage::new();
    for closed in (0..64).filter(|c| c % parts == part) {
        for a in SOURCES {
            for b in SOURCES {
                for c in SOURCES {
                    let streams = [a, b, c];
                    if !streams.iter().all(|&s| usable(s, closed)) {
                        continue;
                    }
                    // Without close-on-exec for the odd numbers: those must not reach the child either.
                    stage.lay(closed, |n| n > 2 && n % 2 == 0);
                    let once = |s: From| streams.iter().filter(|&&t| t == s).count() == 1;
                    let mut kid = Command::new(haft_tests::kid!());
                    kid.stdin(stage.stdio(a, once(a)));
                    kid.stdout(stage.stdio(b, once(b)));
                    kid.stderr(stage.stdio(c, once(c)));
                    let want = stage.expected(streams, closed);
                    stage.launch(&mut kid, &want, &|| format!("closed {closed:06b}, {streams:?}"));
                }
            }
        }
    }
    stage.end();
}

// rust#30490: dup2 in the wrong order when the streams are each other's numbers. Fails when the first pass of the
// shuffle (moving sources that lie among the targets out of the way) is left out.
#[test]
fn every_permutation_of_standard_handles_closed_sets_0_mod_2() {
    isolated!({ every_permutation(0, 2) });
}

// The other half: 0 is closed in each of these sets, so that whatever the library opens for itself lands there.
// Fails when a descriptor of the library's own (the pidfd, a pipe end, the null device) is taken for the parent's
// standard input.
#[test]
fn every_permutation_of_standard_handles_closed_sets_1_mod_2() {
    isolated!({ every_permutation(1, 2) });
}

#[test]
fn permutations_with_everything_inherited() {
    isolated!({
        let mut stage = Stage::new();
        let mut dice = Dice::new(1);
        for _ in 0..800 {
            let closed = dice.below(64) as u32;
            let mut pick = || loop {
                let s = SOURCES[dice.below(8) as usize];
                if usable(s, closed) {
                    return s;
                }
            };
            let streams = [pick(), pick(), pick()];
            // What is given away must not be there twice; what is not, must be there.
            let source = |n: RawFd| streams.contains(&From::Fd(n));
            stage.lay(closed, |n| n > 2 && source(n));
            let once = |s: From| streams.iter().filter(|&&t| t == s).count() == 1;
            let mut kid = Command::new(haft_tests::kid!());
            kid.inherit(Inherit::All);
            kid.stdin(stage.stdio(streams[0], once(streams[0])));
            kid.stdout(stage.stdio(streams[1], once(streams[1])));
            kid.stderr(stage.stdio(streams[2], once(streams[2])));
            let mut want = stage.expected(streams, closed);
            for n in 3..6 {
                if closed & 1 << n == 0 && !source(n) {
                    want.insert(n, id(&stage.files[n as usize]));
                }
            }
            stage.launch(&mut kid, &want, &|| format!("all, closed {closed:06b}, {streams:?}"));
        }
        stage.end();
    });
}

#[test]
fn permutations_with_handles_passed() {
    isolated!({
        let mut stage = Stage::new();
        let mut dice = Dice::new(2);
        for _ in 0..1200 {
            let closed = dice.below(64) as u32;
            let mut pick = || loop {
                let s = SOURCES[dice.below(8) as usize];
                if usable(s, closed) {
                    return s;
                }
            };
            let streams = [pick(), pick(), pick()];
            let passed: Vec<RawFd> = (3..6).filter(|n| closed & 1 << n == 0 && dice.below(2) == 0).collect();
            let keep = dice.below(2) == 0;
            stage.lay(closed, |n| n % 2 == 0 && n > 2);
            let mut kid = Command::new(haft_tests::kid!());
            let mut want = stage.expected(streams, closed);
            for &n in &passed {
                // SAFETY: laid there just now.
                let fd = unsafe { BorrowedFd::borrow_raw(n) };
                kid.pass(&fd).expect("an open descriptor above the standard ones");
                want.insert(n, id(&stage.files[n as usize]));
            }
            let once = |s: From| streams.iter().filter(|&&t| t == s).count() == 1;
            kid.stdin(stage.stdio(streams[0], once(streams[0])));
            kid.stdout(stage.stdio(streams[1], once(streams[1])));
            kid.stderr(stage.stdio(streams[2], once(streams[2])));
            if !keep {
                // What was passed is the Command's own duplicate: the parent may close its descriptor before.
                for &n in &passed {
                    if !streams.contains(&From::Fd(n)) {
                        // SAFETY: laid there by us and owned by nobody.
                        unsafe { libc::close(n) };
                    }
                }
            }
            let what = || format!("passed {passed:?}, closed {closed:06b}, {streams:?}, kept {keep}");
            stage.launch(&mut kid, &want, &what);
        }
        stage.end();
    });
}

#[test]
fn piped_streams_with_low_numbers_closed() {
    isolated!({
        let mut stage = Stage::new();
        let mut wrong = Vec::new();
        for closed in 0..64 {
            for piped in 1..8u32 {
                stage.lay(closed, |n| n > 2);
                let mut kid = Command::new(haft_tests::kid!());
                kid.args(["both", "out", "err"]);
                let of = |n: u32| if piped & 1 << n != 0 { Stdio::piped() } else { Stdio::null() };
                let result = kid.stdin(of(0)).stdout(of(1)).stderr(of(2)).spawn();
                let got = result.and_then(|c| c.wait_with_output());
                let want =
                    (if piped & 2 != 0 { "out\n" } else { "" }, if piped & 4 != 0 { "err\n" } else { "" });
                stage.launches += 1;
                match got {
                    Ok(o)
                        if o.status.success()
                            && (&*o.stdout, &*o.stderr) == (want.0.as_bytes(), want.1.as_bytes()) => {}
                    other => wrong.push(format!("closed {closed:06b}, piped {piped:03b}: {other:?}")),
                }
            }
        }
        stage.wrong = wrong;
        stage.end();
    });
}
