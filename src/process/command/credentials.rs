//! Windows: children of another user.

use std::ffi::{OsStr, OsString};
use std::os::windows::ffi::OsStrExt;

use super::Command;
use super::windows::Settings;
use crate::process::error::Stream;
use crate::process::plan::Source;
use crate::process::plan::flaw::Flaw;
use crate::process::plan::logon::{Given, Logon};
use crate::process::plan::secret::Secret;
use crate::process::plan::together::Asked;
use crate::process::stdio::Kind;
use crate::windows::wide;

/// Who the child is to be.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    user: Option<OsString>,
    domain: Option<OsString>,
    password: Option<Secret>,
    load_profile: bool,
    network_only: bool,
}

impl Settings {
    /// Who the child is; `None` if it is who this process is.
    pub(crate) fn logon(&self) -> Result<Option<Logon>, Flaw> {
        let Credentials { user, domain, password, load_profile, network_only } = &self.credentials;
        Logon::new(&Given {
            user: user.as_deref().map(wide).as_deref(),
            domain: domain.as_deref().map(wide).as_deref(),
            password: password.as_ref(),
            load_profile: *load_profile,
            network_only: *network_only,
        })
    }
}

impl Command {
    /// Launches the child as another user, who is logged on for it: `ada`, or `ada@example.org` without a
    /// [`domain`](Command::domain).
    ///
    /// Windows cannot restrict what such a child inherits, so the command needs [`inherit(Inherit::All)`](Command::inherit). What
    /// else the system's call brings with it:
    ///
    /// * The command line, with the quoted name of the program, has at most 1,024 characters.
    /// * The child has a console of its own, and is the first of a process group. If no standard handle is set it has
    ///   those of that console; otherwise it gets all three, as other children do.
    /// * Its environment is made from the user's profile. If the command changes a variable, it is this process's
    ///   environment with the changes.
    /// * Program and directory are opened as that user. Without [`current_dir`](Command::current_dir) the directory is this
    ///   process's, which another user may not be allowed to enter. Network drives by letter are not there.
    /// * [`kill_tree`](Command::kill_tree) and [`kill_on_parent_exit`](Command::kill_on_parent_exit) work: the child is put into its job
    ///   before it runs. If this process is killed in that moment, a child that never runs is left.
    /// * It does not work in a process of the account `LocalSystem`.
    /// * Launches that restrict what they pass wait for it, and it takes longer than others.
    ///
    /// # Errors
    /// The launch is `InvalidInput` with any other [`Inherit`](crate::process::Inherit), with handles that are
    /// [passed](Command::pass), with [`detached`](Command::detached), [`create_no_window`](Command::create_no_window) and creation
    /// flags that the call does not take, and with a command line that is too long. Nothing is started then. Otherwise,
    /// what the system says.
    ///
    /// ```no_run
    /// use haft::process::{Command, Inherit};
    ///
    /// # let password = String::new();
    /// let output = Command::new("whoami")
    ///     .user_name("ada")
    ///     .password(&password)
    ///     .current_dir(r"C:\")
    ///     .inherit(Inherit::All)
    ///     .output()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # References
    /// * [`CreateProcessWithLogonW`](https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-createprocesswithlogonw)
    pub fn user_name<S: AsRef<OsStr>>(&mut self, user: S) -> &mut Command {
        self.settings.credentials.user = Some(user.as_ref().to_owned());
        self
    }

    /// Sets the domain or computer that knows the [user](Command::user_name). Without one, the user is looked for among the
    /// accounts of this computer (`.`), unless the name says the domain.
    pub fn domain<S: AsRef<OsStr>>(&mut self, domain: S) -> &mut Command {
        self.settings.credentials.domain = Some(domain.as_ref().to_owned());
        self
    }

    /// Sets the password of the [user](Command::user_name). Without one it is empty.
    ///
    /// The command keeps it in UTF-16, in one place, which is overwritten with zeros when the command is dropped or another password is
    /// set. It is in no message and no debug output. Where it comes from is the caller's to overwrite: give a reference.
    pub fn password<S: AsRef<OsStr>>(&mut self, password: S) -> &mut Command {
        self.settings.credentials.password = Some(Secret::new(password.as_ref().encode_wide()));
        self
    }

    /// Loads the profile of the [user](Command::user_name) into the registry, for programs that read `HKEY_CURRENT_USER`
    /// (`LOGON_WITH_PROFILE`). The launch takes longer.
    pub fn load_user_profile(&mut self, load: bool) -> &mut Command {
        self.settings.credentials.load_profile = load;
        self
    }

    /// The child is this process's user, and has the credentials of the [user](Command::user_name) towards other computers alone
    /// (`LOGON_NETCREDENTIALS_ONLY`). The system does not check them. Not together with
    /// [`load_user_profile`](Command::load_user_profile).
    pub fn network_credentials_only(&mut self, only: bool) -> &mut Command {
        self.settings.credentials.network_only = only;
        self
    }

    /// What decides about launches by other means than `CreateProcessW`.
    pub(crate) fn asked(&self) -> Asked {
        let set = |stream: &Stream| self.is_set(*stream);
        let settings = &self.settings;
        Asked {
            inherit: self.inherit,
            redirected: Stream::ALL.into_iter().find(set),
            passed: self.passed.first().map(|passed| passed.passed().value()),
            environment: self.clear_environment || !self.variables.is_empty(),
            user: settings.credentials.user.is_some(),
            creation_flags: settings.flags,
            no_window: settings.no_window,
            process_group: settings.process_group,
            detached: settings.detached,
            kill_on_parent_exit: settings.kill_on_parent_exit,
            kill_tree: settings.kill_tree,
        }
    }

    /// The sources of the standard handles, as far as the child gets them: that of another user, with a console of its own, gets
    /// those of this process only beside others that are its own.
    pub(super) fn given_on(&self, streams: [Source; 3]) -> [Source; 3] {
        let own = |source: &Source| matches!(source, Source::Own(_));
        let asked_for = Stream::ALL.into_iter().any(|stream| self.is_set(stream)) || streams.iter().any(own);
        if self.settings.credentials.user.is_none() || asked_for { streams } else { [Source::Missing; 3] }
    }

    /// Whether the command says what a standard handle is, and not only that it is this process's.
    fn is_set(&self, stream: Stream) -> bool {
        self.stdio[stream as usize].as_ref().is_some_and(|stdio| !matches!(stdio.0, Kind::Inherit))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::process::inherit::Inherit;
    use crate::process::plan::Plan;
    use crate::process::stdio::Stdio;
    use crate::process::sys;
    use crate::room_lock::Entry;

    fn planned(command: &Command, streams: [Source; 3]) -> Plan {
        Plan::resolve(command, &sys::parent(command.given_on(streams))).unwrap()
    }

    const LENT: Source = Source::Shared { value: 4, inheritable: false };
    const SHARED: Source = Source::Shared { value: 4, inheritable: true };

    // Wine cannot log on: the plan is looked at instead. Fails with `given_on` that gives its streams back.
    #[test]
    fn without_standard_handles_a_logon_shares_the_room_of_those_that_inherit_everything() {
        let mut command = Command::new("cmd");
        command.user_name("ada").password("tomato").inherit(Inherit::All).stdin(Stdio::inherit());
        let mut everything = Command::new("cmd");
        everything.inherit(Inherit::All);
        let shared = planned(&everything, [SHARED; 3]).room();
        assert!(matches!(shared, Entry::Room(_)));

        let plan = planned(&command, [LENT, SHARED, LENT]);
        assert_eq!((plan.streams, plan.room()), ([Source::Missing; 3], shared));
        assert!(plan.logon.is_some() && plan.handle_list([0; 3]).unwrap().is_none());
        assert!(!format!("{plan:?}").contains("tomato"));

        // One that is set: all three, and alone where that makes a handle inheritable.
        let plan = planned(&command, [Source::Own(8), SHARED, LENT]);
        assert_eq!((plan.streams, plan.room()), ([Source::Own(8), SHARED, LENT], Entry::Alone));
        command.stderr(std::io::stdout());
        let plan = planned(&command, [SHARED; 3]);
        assert_eq!((plan.streams, plan.room()), ([SHARED; 3], shared));
        assert_eq!(planned(&everything, [LENT; 3]).streams, [LENT; 3]);
    }

    // Fails when the directory goes to the plan as it is.
    #[test]
    fn the_directory_of_a_logon_is_a_full_path() {
        let mut command = Command::new("cmd");
        command.current_dir("here").user_name("ada").inherit(Inherit::All);
        let text = |plan: Plan| String::from_utf16(&plan.directory.unwrap()).unwrap();
        let full = text(planned(&command, [SHARED; 3]));
        assert_eq!(full, format!("{}\0", std::path::absolute("here").unwrap().display()));
        assert_eq!(text(planned(Command::new("cmd").current_dir("here"), [SHARED; 3])), "here\0");
    }
}
