//! The shell of Windows.

use super::super::Command;
use super::WindowStyle;
use crate::process::child::Child;
use crate::process::error::LaunchError;
use crate::process::plan::shell::Execution;
use crate::process::plan::{arguments, refused, together};
use crate::process::sys;
use crate::windows::wide;

/// `SW_…`: <https://learn.microsoft.com/windows/win32/api/winuser/nf-winuser-showwindow>
impl WindowStyle {
    pub(crate) fn show(self) -> u16 {
        use windows_sys::Win32::UI::WindowsAndMessaging::{
            SW_HIDE, SW_SHOWMAXIMIZED, SW_SHOWMINIMIZED, SW_SHOWNORMAL,
        };
        let show = match self {
            WindowStyle::Normal => SW_SHOWNORMAL,
            WindowStyle::Hidden => SW_HIDE,
            WindowStyle::Minimized => SW_SHOWMINIMIZED,
            WindowStyle::Maximized => SW_SHOWMAXIMIZED,
        };
        show as u16
    }
}

impl Command {
    pub(super) fn open(&mut self) -> Result<Option<Child>, LaunchError> {
        let refuse = |flaw| refused(self, flaw);
        together::with_shell_execute(&self.asked()).map_err(refuse)?;
        let execution = Execution::new(
            &wide(&self.program),
            &arguments(self),
            self.shell.verb.as_deref().map(wide).as_deref(),
            self.directory.as_ref().map(|directory| wide(directory.as_os_str())).as_deref(),
            self.window.unwrap_or_default().show(),
        )
        .map_err(refuse)?;
        let launched =
            sys::shell_execute(execution).map_err(|error| sys::explain_shell_execute(self, error))?;
        Ok(launched.map(|launched| Child::new(launched, None, None, None)))
    }
}
