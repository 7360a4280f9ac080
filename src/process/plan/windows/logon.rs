//! A launch as another user: what `CreateProcessWithLogonW` takes.
//! <https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-createprocesswithlogonw>

use super::flaw::Flaw;
use super::secret::Secret;
use super::{BACKSLASH, DOT, units};

/// Without the NUL at the end.
const LONGEST: usize = 1_024;

const LOGON_WITH_PROFILE: u32 = 1;
const LOGON_NETCREDENTIALS_ONLY: u32 = 2;

/// The creation flags that it takes.
const TAKEN: u32 = CREATE_DEFAULT_ERROR_MODE
    | CREATE_NEW_CONSOLE
    | CREATE_NEW_PROCESS_GROUP
    | CREATE_SEPARATE_WOW_VDM
    | CREATE_SUSPENDED
    | CREATE_UNICODE_ENVIRONMENT
    | PRIORITY_CLASSES;

const CREATE_SUSPENDED: u32 = 0x4;
const CREATE_NEW_CONSOLE: u32 = 0x10;
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
const CREATE_UNICODE_ENVIRONMENT: u32 = 0x400;
const CREATE_SEPARATE_WOW_VDM: u32 = 0x800;
const CREATE_DEFAULT_ERROR_MODE: u32 = 0x0400_0000;
/// Normal, idle, high, realtime, below and above normal.
const PRIORITY_CLASSES: u32 = 0x20 | 0x40 | 0x80 | 0x100 | 0x4000 | 0x8000;

/// What a command says about the user, before it is looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given<'a> {
    pub(crate) user: Option<&'a [u16]>,
    pub(crate) domain: Option<&'a [u16]>,
    pub(crate) password: Option<&'a Secret>,
    pub(crate) load_profile: bool,
    pub(crate) network_only: bool,
}

/// Who the child is. Strings are terminated.
#[derive(Clone, Debug)]
pub(crate) struct Logon {
    pub(crate) user: Vec<u16>,
    /// `None`: the user's name says it.
    pub(crate) domain: Option<Vec<u16>>,
    pub(crate) password: Secret,
    pub(crate) flags: u32,
}

impl Logon {
    /// `None`: the child is who this process is.
    pub(crate) fn new(given: &Given<'_>) -> Result<Option<Logon>, Flaw> {
        let Some(user) = given.user else {
            let alone = [
                (given.domain.is_some(), "domain is set, and user_name is not"),
                (given.password.is_some(), "password is set, and user_name is not"),
                (given.load_profile, "load_user_profile(true) is set, and user_name is not"),
                (given.network_only, "network_credentials_only(true) is set, and user_name is not"),
            ];
            return match alone.into_iter().find(|(set, _)| *set) {
                Some((_, why)) => Err(Flaw::Setting(why)),
                None => Ok(None),
            };
        };
        if user.is_empty() {
            return Err(Flaw::Setting("user_name is empty"));
        }
        let strings = [user, given.domain.unwrap_or_default()];
        if strings.iter().any(|string| string.contains(&0))
            || given.password.is_some_and(Secret::contains_nul)
        {
            return Err(Flaw::Setting("user_name, domain or password contains a NUL character"));
        }
        if user.contains(&BACKSLASH) {
            return Err(Flaw::Setting("user_name contains a backslash: the domain is set with domain(..)"));
        }
        let says_its_domain = user.contains(&AT);
        if says_its_domain && given.domain.is_some() {
            return Err(Flaw::Setting("user_name in the form user@domain goes without domain(..)"));
        }
        if given.load_profile && given.network_only {
            return Err(Flaw::Setting(
                "load_user_profile(true) and network_credentials_only(true) cannot be combined: Windows takes one of them",
            ));
        }
        let domain = match given.domain {
            _ if says_its_domain => None,
            // The accounts of this computer: Windows asks for a domain with a name that does not say it.
            None => Some(vec![DOT, 0]),
            Some(domain) => Some([domain, &[0]].concat()),
        };
        let flags = if given.load_profile { LOGON_WITH_PROFILE } else { 0 }
            | if given.network_only { LOGON_NETCREDENTIALS_ONLY } else { 0 };
        let password = given.password.cloned().unwrap_or_else(|| Secret::new(std::iter::empty()));
        Ok(Some(Logon { user: [user, &[0]].concat(), domain, password, flags }))
    }
}

const AT: u16 = units(b"@")[0];

/// Looks at a command line that ends in a NUL.
pub(crate) fn check_command_line(line: &[u16]) -> Result<(), Flaw> {
    if line.len() - 1 > LONGEST {
        return Err(Flaw::CommandLine(
            "it is longer than the 1,024 characters that Windows takes together with user_name",
        ));
    }
    Ok(())
}

/// Whether it takes all of these creation flags.
pub(crate) fn takes(creation_flags: u32) -> bool {
    creation_flags & !TAKEN == 0
}

#[cfg(test)]
mod tests {
    use super::super::wide;
    use super::*;

    fn built(given: Given<'_>) -> (String, Option<String>, u32) {
        let logon = Logon::new(&given).unwrap().unwrap();
        let text = |units: &[u16]| {
            let (end, text) = units.split_last().unwrap();
            assert_eq!(*end, 0);
            String::from_utf16(text).unwrap()
        };
        (text(&logon.user), logon.domain.as_deref().map(text), logon.flags)
    }

    // Wine cannot log on: what the call is given is looked at instead.
    #[test]
    fn the_arguments_of_a_logon() {
        let (ada, upn, domain) = (wide("ada"), wide("ada@example.org"), wide("EXAMPLE"));
        let user = Given { user: Some(&ada), ..Given::default() };
        assert_eq!(built(user), ("ada".into(), Some(".".into()), 0));
        assert_eq!(built(Given { domain: Some(&domain), ..user }).1.as_deref(), Some("EXAMPLE"));
        let by_upn = Given { user: Some(&upn), load_profile: true, ..Given::default() };
        assert_eq!(built(by_upn), ("ada@example.org".into(), None, 1));
        assert_eq!(built(Given { network_only: true, ..user }).2, 2);

        let password = Secret::new("tomato".encode_utf16());
        let given = Given { password: Some(&password), ..user };
        let logon = Logon::new(&given).unwrap().unwrap();
        // The command's own, not a copy of it.
        assert_eq!(logon.password.terminated().as_ptr(), password.terminated().as_ptr());
        assert!(!format!("{given:?} {logon:?}").contains("tomato"));
        assert_eq!(Logon::new(&user).unwrap().unwrap().password.terminated(), [0]);
        assert!(Logon::new(&Given::default()).unwrap().is_none());
    }

    #[test]
    fn what_is_refused() {
        let (ada, upn, old) = (wide("ada"), wide("ada@example.org"), wide(r"EXAMPLE\ada"));
        let (nul, bad) = (wide("a\0b"), Secret::new("a\0b".encode_utf16()));
        let user = Given { user: Some(&ada), ..Given::default() };
        for (given, word) in [
            (Given { domain: Some(&ada), ..Given::default() }, "domain is set"),
            (Given { password: Some(&bad), ..Given::default() }, "password is set"),
            (Given { load_profile: true, ..Given::default() }, "load_user_profile(true)"),
            (Given { network_only: true, ..Given::default() }, "network_credentials_only(true)"),
            (Given { user: Some(&[]), ..Given::default() }, "empty"),
            (Given { user: Some(&nul), ..Given::default() }, "NUL"),
            (Given { domain: Some(&nul), ..user }, "NUL"),
            (Given { password: Some(&bad), ..user }, "NUL"),
            (Given { user: Some(&old), ..Given::default() }, "domain(..)"),
            (Given { user: Some(&upn), domain: Some(&ada), ..Given::default() }, "domain(..)"),
            (Given { load_profile: true, network_only: true, ..user }, "one of them"),
        ] {
            let flaw = Logon::new(&given).unwrap_err();
            assert!(matches!(flaw, Flaw::Setting(_)) && flaw.reason().contains(word), "{given:?}: {flaw:?}");
        }
    }

    #[test]
    fn limits() {
        let line = |length| [vec![DOT; length], vec![0]].concat();
        assert_eq!(check_command_line(&line(LONGEST)), Ok(()));
        let flaw = check_command_line(&line(LONGEST + 1)).unwrap_err();
        assert!(matches!(flaw, Flaw::CommandLine(_)) && flaw.reason().contains("1,024"));

        assert!(takes(0) && takes(TAKEN));
        for one in 0..32 {
            assert_eq!(takes(1 << one), TAKEN & 1 << one != 0);
        }
    }

    #[cfg(windows)]
    #[test]
    fn numbers_are_those_of_the_system() {
        use windows_sys::Win32::System::Threading as system;
        assert_eq!(LOGON_WITH_PROFILE, system::LOGON_WITH_PROFILE);
        assert_eq!(LOGON_NETCREDENTIALS_ONLY, system::LOGON_NETCREDENTIALS_ONLY);
        let taken = system::CREATE_DEFAULT_ERROR_MODE
            | system::CREATE_NEW_CONSOLE
            | system::CREATE_NEW_PROCESS_GROUP
            | system::CREATE_SEPARATE_WOW_VDM
            | system::CREATE_SUSPENDED
            | system::CREATE_UNICODE_ENVIRONMENT
            | system::NORMAL_PRIORITY_CLASS
            | system::IDLE_PRIORITY_CLASS
            | system::HIGH_PRIORITY_CLASS
            | system::REALTIME_PRIORITY_CLASS
            | system::BELOW_NORMAL_PRIORITY_CLASS
            | system::ABOVE_NORMAL_PRIORITY_CLASS;
        assert_eq!(TAKEN, taken);
    }
}
