//! What belongs to the thread that launches holds in the child: a launch never goes through another thread.
//!
//! Each of these is set on one thread only. A launcher with a helper thread of its own fails all of them, and lets a
//! child escape its caller's sandbox.
#![cfg(target_os = "linux")]

use haft::process::{Command, Stdio};
use haft_tests::{kid, on_a_thread, refuse, skip, table};
use std::io::Read;
use std::path::Path;

/// Runs kid through each way of launching, which must not differ in this.
fn every_way(args: &[&str]) -> Vec<String> {
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    let by_output = text(Command::new(kid!()).args(args).output().unwrap().stdout);
    let mut child = Command::new(kid!()).args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut by_spawn = String::new();
    child.stdout.take().unwrap().read_to_string(&mut by_spawn).unwrap();
    child.wait().unwrap();
    let (mut read, write) = std::io::pipe().unwrap();
    let mut command = Command::new(kid!());
    command.args(args).stdout(write).status().unwrap();
    drop(command);
    let mut by_status = String::new();
    read.read_to_string(&mut by_status).unwrap();
    vec![by_output, by_spawn, by_status]
}

#[test]
fn landlock_rules_hold_in_the_child() {
    use landlock::{
        ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    };
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "x").unwrap();
    let secret = secret.to_str().unwrap();
    let kids = Path::new(kid!()).parent().unwrap();
    let outcome = on_a_thread(|| {
        let abi = ABI::V1;
        let mut rules = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))
            .unwrap()
            .create()
            .map_err(|e| e.to_string())?;
        // Enough to start kid, and nothing of the temporary folder.
        for d in ["/lib", "/lib64", "/usr", "/bin", "/etc", "/proc", "/dev", "/nix", kids.to_str().unwrap()] {
            if let Ok(d) = PathFd::new(d) {
                let all = if Path::new("/dev").exists() {
                    AccessFs::from_all(abi)
                } else {
                    AccessFs::from_read(abi)
                };
                rules = rules.add_rule(PathBeneath::new(d, all)).map_err(|e| e.to_string())?;
            }
        }
        let status = rules.restrict_self().map_err(|e| e.to_string())?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err("this kernel has no Landlock".to_owned());
        }
        Ok(every_way(&["open", secret]))
    });
    match outcome {
        Err(why) => skip!("{why}"),
        Ok(seen) => assert_eq!(seen, vec![format!("open errno {}\n", libc::EACCES); 3]),
    }
    // And on this thread, which has no rules, the child may.
    assert_eq!(every_way(&["open", secret]), vec!["open ok\n"; 3]);
}

#[test]
fn affinity_holds_in_the_child() {
    let allowed = cpus();
    if allowed.len() < 2 {
        skip!("one processor is allowed");
    }
    for &cpu in [allowed.first(), allowed.last()].into_iter().flatten() {
        let seen = on_a_thread(|| {
            // SAFETY: the set is ours.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
            }
            every_way(&["status"])
        });
        for s in seen {
            assert_eq!(table(&s)["Cpus_allowed_list"], cpu.to_string());
        }
    }
    assert_eq!(cpus(), allowed);
}

fn cpus() -> Vec<usize> {
    // SAFETY: the set is ours.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &mut set), 0);
        (0..libc::CPU_SETSIZE as usize).filter(|&c| libc::CPU_ISSET(c, &set)).collect()
    }
}

#[test]
fn no_new_privs_holds_in_the_child() {
    let seen = on_a_thread(|| {
        // SAFETY: sets a flag of this thread.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
        every_way(&["status"])
    });
    for s in seen {
        assert_eq!(table(&s)["NoNewPrivs"], "1");
    }
    // SAFETY: reads a flag of this thread.
    if unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } == 0 {
        for s in every_way(&["status"]) {
            assert_eq!(table(&s)["NoNewPrivs"], "0");
        }
    }
}

#[test]
fn seccomp_filters_hold_in_the_child() {
    let seen = on_a_thread(|| {
        refuse(&[libc::SYS_personality], libc::EXDEV)?;
        Ok::<_, String>(every_way(&["personality"]))
    });
    match seen {
        Err(why) => skip!("no filter can be set: {why}"),
        Ok(seen) => assert_eq!(seen, vec![format!("personality {}\n", libc::EXDEV); 3]),
    }
    for s in every_way(&["personality"]) {
        assert_ne!(s, format!("personality {}\n", libc::EXDEV));
    }
}

#[test]
fn niceness_holds_in_the_child() {
    let own = |_: ()| {
        // SAFETY: reads a number of this thread.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    };
    let before = own(());
    let (set, seen) = on_a_thread(|| {
        // SAFETY: changes a number of this thread: on Linux niceness belongs to threads.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, before + 3) };
        (own(()), every_way(&["status"]))
    });
    for s in seen {
        assert_eq!(table(&s)["nice"], set.to_string());
    }
    assert_eq!(own(()), before);
}

// The parent of the child is this process, whichever thread launched and whether or not that thread still lives.
#[test]
fn a_child_outlives_the_thread_that_launched_it() {
    let mut child = on_a_thread(|| {
        Command::new(kid!()).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    });
    assert!(child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_child_launched_on_a_small_stack() {
    // 16 KiB beyond what the thread's own start takes is little; a launch must not put its data on the stack.
    let t = std::thread::Builder::new().stack_size(64 << 10);
    t.spawn(|| {
        let many: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
        assert!(Command::new(kid!()).args(["exit", "0"]).args(many).status().unwrap().success());
    })
    .unwrap()
    .join()
    .unwrap();
}
