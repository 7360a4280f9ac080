//! What Unix adds to a command: descriptors that are passed.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use super::{Command, invalid};
use crate::process::error::{Object, Stream};
use crate::process::inherit::Passed;
use crate::process::plan::{Environment, Parent};
use crate::process::sys;

/// A duplicate that goes to the child under a number of its own.
pub(crate) struct PassedHandle {
    /// `None`: a pipe or socket that went with an earlier launch.
    fd: Option<OwnedFd>,
    target: RawFd,
}

impl PassedHandle {
    pub(crate) fn pair(&self) -> Option<(i32, i32)> {
        Some((self.fd.as_ref()?.as_raw_fd(), self.target))
    }

    /// What to call it in an error, if it went with an earlier launch.
    pub(super) fn spent(&self) -> Option<Object> {
        self.fd.is_none().then_some(Object::Descriptor(self.target))
    }

    pub(super) fn let_go(&mut self) {
        self.fd.take_if(|fd| sys::has_other_end(fd));
    }

    pub(super) fn passed(&self) -> Passed {
        Passed { number: self.target }
    }
}

impl Command {
    /// Gives the child a duplicate of `handle`, made now, under the number that `handle` has now.
    ///
    /// The original may be closed, and its number reused, before the launch. Passing the same open file under the
    /// same number again gives the same [`Passed`].
    ///
    /// # Errors
    /// * `InvalidInput` if the number is 0, 1 or 2, or was promised to another open file already (a loop that
    ///   opens, passes and drops gets one number again and again): [`map_fd`](Command::map_fd) gives it another.
    /// * What `fcntl(F_DUPFD_CLOEXEC)` says, usually that too many files are open.
    ///
    /// ```
    /// use haft::process::Command;
    ///
    /// let file = std::fs::File::open("/dev/null")?;
    /// let mut command = Command::new("ls");
    /// let number = command.pass(&file)?;
    /// let output = command.arg(format!("/proc/self/fd/{number}")).output()?;
    /// assert!(output.status.success());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # References
    /// * [`F_DUPFD_CLOEXEC`](https://man7.org/linux/man-pages/man2/F_DUPFD_CLOEXEC.2const.html)
    pub fn pass<H: AsFd + ?Sized>(&mut self, handle: &H) -> io::Result<Passed> {
        let number = handle.as_fd().as_raw_fd();
        if (0..3).contains(&number) {
            return Err(invalid(format!(
                "descriptor {number} is a standard handle of this process and cannot be passed under its own \
                 number; give it another with map_fd(fd, n)"
            )));
        }
        self.promise(handle, number)
    }

    /// Gives the child a duplicate of `handle`, made now, under a number of your choice, 3 or above.
    ///
    /// # Errors
    /// * `InvalidInput` if the number is negative, is 0, 1 or 2 (which [`stdin`](Command::stdin),
    ///   [`stdout`](Command::stdout) and [`stderr`](Command::stderr) set), or was promised to another open file.
    /// * What `fcntl(F_DUPFD_CLOEXEC)` says. A number above the child's `RLIMIT_NOFILE` fails at the launch.
    ///
    /// ```
    /// use haft::process::Command;
    ///
    /// let (mut reader, writer) = std::io::pipe()?;
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo from nine >&9"]);
    /// command.map_fd(&writer, 9)?;
    /// drop(writer);
    /// assert!(command.status()?.success()); // and the command's own duplicate is closed now
    /// assert_eq!(std::io::read_to_string(&mut reader)?, "from nine\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn map_fd<H: AsFd + ?Sized>(&mut self, handle: &H, number: RawFd) -> io::Result<Passed> {
        if number < 0 {
            return Err(invalid(format!("{number} is not a descriptor number")));
        }
        if let Some(stream) = Stream::ALL.get(number as usize) {
            return Err(invalid(format!("descriptor {number} of the child is set with {stream}()")));
        }
        self.promise(handle, number)
    }

    fn promise<H: AsFd + ?Sized>(&mut self, handle: &H, target: RawFd) -> io::Result<Passed> {
        let earlier = self.passed.iter_mut().find(|passed| passed.target == target);
        if let Some(PassedHandle { fd: Some(fd), .. }) = &earlier {
            if !sys::same_file(fd.as_fd(), handle.as_fd()) {
                return Err(invalid(format!(
                    "number {target} of the child was promised to another open file already; give this one \
                     another with map_fd(fd, n)"
                )));
            }
            return Ok(Passed { number: target });
        }
        let fd = Some(sys::duplicate(handle)?);
        match earlier {
            // What went with an earlier launch is gone; the number is free.
            Some(spent) => spent.fd = fd,
            None => self.passed.push(PassedHandle { fd, target }),
        }
        Ok(Passed { number: target })
    }

    pub(super) fn parent(&self, streams: [sys::Source; 3]) -> Parent {
        Parent {
            environment: if self.clear_environment {
                Environment::default()
            } else {
                Environment::capture(std::env::vars_os())
            },
            streams,
        }
    }

    /// The directory and the environment, as a shell would set them.
    pub(super) fn surroundings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(directory) = &self.directory {
            write!(f, "cd {directory:?} && ")?;
        }
        let removed = || self.variables.iter().filter(|(_, value)| value.is_none());
        if self.clear_environment {
            f.write_str("env -i ")?;
        } else if removed().next().is_some() {
            f.write_str("env ")?;
            for (name, _) in removed() {
                write!(f, "-u {} ", name.as_os_str().display())?;
            }
        }
        for (name, value) in &self.variables {
            if let Some(value) = value {
                write!(f, "{}={value:?} ", name.as_os_str().display())?;
            }
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::process::inherit::Inherit;
    use crate::process::plan::Plan;

    #[test]
    fn a_number_is_promised_to_one_open_file() {
        let mut command = Command::new("x");
        let file = File::open("/dev/null").unwrap();
        let same = file.try_clone().unwrap();
        // Another open file of the same device, as a loop over one path makes them.
        let other = File::open("/dev/null").unwrap();
        let number = command.pass(&file).unwrap();
        assert_eq!(number.to_string(), file.as_raw_fd().to_string());
        assert_eq!(command.pass(&file).unwrap(), number);
        assert_eq!(command.map_fd(&same, number.number()).unwrap(), number);
        assert_eq!(command.passed.len(), 1);
        let error = command.map_fd(&other, number.number()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("map_fd(fd, n)"), "{error}");
        assert_eq!(command.map_fd(&other, 77).unwrap().number(), 77);
    }

    #[test]
    fn inherit_handles_is_inherit_in_two_words() {
        for (all, inherit) in [(true, Inherit::All), (false, Inherit::Named)] {
            for before in [Inherit::All, Inherit::Named] {
                let mut command = Command::new("x");
                command.inherit(before).inherit_handles(all);
                assert_eq!(command.inherit, inherit);
                let parent = Parent { environment: Environment::default(), streams: [0, 1, 2] };
                let planned = |command: &Command| {
                    let descriptors = Plan::resolve(command, &parent).unwrap().descriptors;
                    (descriptors.inherit, descriptors.close_after)
                };
                let by_name = planned(Command::new("x").inherit(inherit));
                assert_eq!(planned(&command), by_name);
            }
        }
    }

    #[test]
    fn standard_numbers_are_refused_by_name() {
        let mut command = Command::new("x");
        let error = command.pass(&io::stdin()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("map_fd(fd, n)"), "{error}");
        let error = command.map_fd(&io::stdin(), 2).unwrap_err();
        assert!(error.to_string().contains("stderr()"), "{error}");
        assert!(command.map_fd(&io::stdin(), -1).is_err());
        assert_eq!(command.map_fd(&io::stdin(), 9).unwrap().number(), 9);
    }
}
