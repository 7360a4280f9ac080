//! The desktop's opener.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::mem::replace;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::super::{Command, Unset};
use crate::process::child::Child;
use crate::process::error::{Cause, LaunchError, Object, Step};
use crate::process::inherit::Inherit;

const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

impl Command {
    /// Launches the opener with the target as its only argument, isolated, and with all else that the command sets.
    pub(super) fn open(&mut self) -> Result<Option<Child>, LaunchError> {
        let refuse = |object, cause| self.error(Step::Resolve, object, cause);
        if let Some(verb) = &self.shell.verb
            && !verb.eq_ignore_ascii_case("open")
        {
            let why = format!("verb {verb:?}: the desktop's opener can open and nothing else");
            return Err(refuse(Object::Launch, Cause::Kept(ErrorKind::Unsupported, why)));
        }
        if !self.args.is_empty() {
            return Err(refuse(
                Object::Argument(0),
                Cause::Invalid("the desktop's opener takes what it is to open, and no arguments for it"),
            ));
        }
        if self.program.is_empty() {
            return Err(refuse(Object::Launch, Cause::Invalid("it names nothing to open")));
        }

        let target = replace(&mut self.program, OPENER.into());
        self.args.push(operand(&target));
        let inherit = replace(&mut self.inherit, Inherit::Named);
        let child = self.launch(Unset::Inherit);
        self.inherit = inherit;
        self.args.clear();
        self.program = target;
        child.map(Some).map_err(|error| error.of_program(&self.program))
    }
}

/// The target so that no opener takes it for an option. No address begins in that way.
fn operand(target: &OsStr) -> OsString {
    if target.as_bytes().starts_with(b"-") {
        return OsString::from_vec([b"./", target.as_bytes()].concat());
    }
    target.to_owned()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // Fails when `operand` gives the target back as it is.
    #[test]
    fn a_target_is_no_option() {
        for (target, wanted) in [
            ("--manual", "./--manual"),
            ("-", "./-"),
            ("a-b", "a-b"),
            ("/-x", "/-x"),
            ("https://x", "https://x"),
        ] {
            assert_eq!(operand(OsStr::new(target)), wanted);
        }
    }
}
