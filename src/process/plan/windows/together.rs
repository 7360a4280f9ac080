//! Which settings do not go together with a launch by the shell, or as another user.
//!
//! Neither call can restrict what the child inherits, and each takes less than `CreateProcessW`. What it would leave
//! out is refused by name, before anything starts.

use super::flaw::Flaw;
use super::logon;
use crate::process::error::Stream;
use crate::process::inherit::Inherit;

/// What a command asks for, as far as that matters here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) inherit: Inherit,
    /// The first standard handle that is set to something.
    pub(crate) redirected: Option<Stream>,
    /// The first handle that is passed.
    pub(crate) passed: Option<usize>,
    pub(crate) environment: bool,
    pub(crate) user: bool,
    pub(crate) creation_flags: u32,
    pub(crate) no_window: bool,
    pub(crate) process_group: bool,
    pub(crate) detached: bool,
    pub(crate) kill_on_parent_exit: bool,
    pub(crate) kill_tree: bool,
}

/// The first flaw of a row.
fn first(row: impl IntoIterator<Item = (bool, &'static str)>) -> Result<(), Flaw> {
    match row.into_iter().find(|(set, _)| *set) {
        Some((_, why)) => Err(Flaw::Setting(why)),
        None => Ok(()),
    }
}

/// Whether the shell can be asked for this.
pub(crate) fn with_shell_execute(asked: &Asked) -> Result<(), Flaw> {
    first([
        (
            asked.user,
            "shell_execute(true) and user_name cannot be combined: the shell starts programs as the user of this process",
        ),
        (
            asked.inherit != Inherit::All,
            "shell_execute(true) and inherit(Inherit::Named), the default, cannot be combined: Windows cannot restrict \
             what a program inherits that the shell starts; add .inherit(Inherit::All)",
        ),
    ])?;
    if let Some(stream) = asked.redirected {
        return Err(Flaw::Stream(
            stream,
            "shell_execute(true) and a standard handle that is set cannot be combined: the shell passes none",
        ));
    }
    if let Some(value) = asked.passed {
        return Err(Flaw::Passed(
            value,
            "shell_execute(true) and pass cannot be combined: the shell passes no handle",
        ));
    }
    first([
        (
            asked.environment,
            "shell_execute(true) and env, env_remove or env_clear cannot be combined: the shell gives this process's \
             environment on",
        ),
        (
            asked.kill_on_parent_exit,
            "shell_execute(true) and kill_on_parent_exit(true) cannot be combined: the shell puts nothing into a job",
        ),
        (
            asked.kill_tree,
            "shell_execute(true) and kill_tree(true) cannot be combined: the shell puts nothing into a job",
        ),
        (asked.detached, "shell_execute(true) and detached(true) cannot be combined"),
        (
            asked.no_window,
            "shell_execute(true) and create_no_window(true) cannot be combined: use \
             window_style(WindowStyle::Hidden)",
        ),
        (asked.process_group, "shell_execute(true) and create_new_process_group(true) cannot be combined"),
        (asked.creation_flags != 0, "shell_execute(true) and creation_flags cannot be combined"),
    ])
}

/// Whether a child can be launched as another user with this.
pub(crate) fn with_user_name(asked: &Asked) -> Result<(), Flaw> {
    if !asked.user {
        return Ok(());
    }
    first([(
        asked.inherit != Inherit::All,
        "user_name and inherit(Inherit::Named), the default, cannot be combined: Windows cannot restrict what a \
         program inherits that is launched as another user; add .inherit(Inherit::All)",
    )])?;
    if let Some(value) = asked.passed {
        return Err(Flaw::Passed(
            value,
            "user_name and pass cannot be combined: of a launch as another user Windows promises the standard handles \
             alone",
        ));
    }
    first([
        (
            asked.detached,
            "user_name and detached(true) cannot be combined: Windows gives a child of another user a console of its own",
        ),
        (
            asked.no_window,
            "user_name and create_no_window(true) cannot be combined: Windows gives a child of another user a console of \
             its own; use window_style(WindowStyle::Hidden)",
        ),
        (
            !logon::takes(asked.creation_flags),
            "user_name and these creation_flags cannot be combined: Windows takes priorities, CREATE_NEW_CONSOLE, \
             CREATE_NEW_PROCESS_GROUP, CREATE_DEFAULT_ERROR_MODE, CREATE_SEPARATE_WOW_VDM and CREATE_SUSPENDED alone",
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell() -> Asked {
        Asked { inherit: Inherit::All, ..Asked::default() }
    }

    fn user() -> Asked {
        Asked { user: true, ..shell() }
    }

    /// Each is refused, and by name.
    fn refused(by: fn(&Asked) -> Result<(), Flaw>, setting: &str, row: &[(Asked, &str)]) {
        for (asked, other) in row {
            let flaw = by(asked).expect_err(other);
            let reason = flaw.reason();
            assert!(reason.contains(setting) && reason.contains(other), "{setting} and {other}: {reason}");
        }
    }

    // Each line fails without its refusal.
    #[test]
    fn the_shell_is_not_asked_for_what_it_would_leave_out() {
        assert_eq!(with_shell_execute(&shell()), Ok(()));
        refused(
            with_shell_execute,
            "shell_execute(true)",
            &[
                (Asked { inherit: Inherit::Named, ..shell() }, "inherit(Inherit::Named)"),
                (Asked { inherit: Inherit::Named, ..shell() }, "add .inherit(Inherit::All)"),
                (Asked { redirected: Some(Stream::Stderr), ..shell() }, "standard handle"),
                (Asked { passed: Some(8), ..shell() }, "pass"),
                (Asked { environment: true, ..shell() }, "env_clear"),
                (Asked { user: true, ..shell() }, "user_name"),
                (Asked { kill_on_parent_exit: true, ..shell() }, "kill_on_parent_exit(true)"),
                (Asked { kill_tree: true, ..shell() }, "kill_tree(true)"),
                (Asked { detached: true, ..shell() }, "detached(true)"),
                (Asked { no_window: true, ..shell() }, "create_no_window(true)"),
                (Asked { process_group: true, ..shell() }, "create_new_process_group(true)"),
                (Asked { creation_flags: 0x10, ..shell() }, "creation_flags"),
            ],
        );
        let stream = with_shell_execute(&Asked { redirected: Some(Stream::Stdin), ..shell() });
        assert!(matches!(stream, Err(Flaw::Stream(Stream::Stdin, _))));
        assert!(matches!(with_shell_execute(&Asked { passed: Some(8), ..shell() }), Err(Flaw::Passed(8, _))));
    }

    // Each line fails without its refusal.
    #[test]
    fn another_user_s_child_is_not_promised_what_it_would_not_get() {
        assert_eq!(with_user_name(&user()), Ok(()));
        refused(
            with_user_name,
            "user_name",
            &[
                (Asked { inherit: Inherit::Named, ..user() }, "inherit(Inherit::Named)"),
                (Asked { inherit: Inherit::Named, ..user() }, "add .inherit(Inherit::All)"),
                (Asked { passed: Some(8), ..user() }, "pass"),
                (Asked { detached: true, ..user() }, "detached(true)"),
                (Asked { no_window: true, ..user() }, "create_no_window(true)"),
                (Asked { creation_flags: 0x0100_0000, ..user() }, "creation_flags"),
            ],
        );
        // These it takes, and all of it is fine without a user.
        let taken = Asked {
            redirected: Some(Stream::Stdin),
            environment: true,
            kill_on_parent_exit: true,
            kill_tree: true,
            process_group: true,
            creation_flags: 0x4000,
            ..user()
        };
        assert_eq!(with_user_name(&taken), Ok(()));
        assert_eq!(with_user_name(&Asked { passed: Some(8), detached: true, ..Asked::default() }), Ok(()));
    }
}
