//! What uname and /proc tell.

use std::fs;
use std::path::Path;

/// The system's name and version.
pub(super) fn system() -> String {
    let system = rustix::system::uname();
    format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy())
}

/// How many threads had work, on average over the last minute.
pub(super) fn busy() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// The name of the file system that this path is on, as in the list of mounts.
pub(in crate::tour) fn file_system(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    of_mount(&path, &fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// The type of the deepest mount above `path`. A later mount at the same place hides the earlier one.
fn of_mount(path: &Path, mounts: &str) -> Option<String> {
    let mut deepest: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        // id parent major:minor root POINT options … - TYPE source options
        let (mount, details) = line.split_once(" - ")?;
        let point = Path::new(mount.split(' ').nth(4)?);
        let depth = point.components().count();
        if path.starts_with(point) && deepest.is_none_or(|(most, _)| depth >= most) {
            deepest = Some((depth, details.split(' ').next()?));
        }
    }
    deepest.map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_and_latest_mount_counts() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/vda rw\n2 1 0:2 / /tmp rw shared:1 - overlay o rw\n\
                      3 1 0:3 / /tmp rw - tmpfs t rw\n4 1 0:4 / /tm rw - xfs x rw\n";
        let of = |path| of_mount(Path::new(path), mounts);
        assert_eq!(of("/tmp/a/b").as_deref(), Some("tmpfs"));
        assert_eq!(of("/tmpfile").as_deref(), Some("ext4"));
        assert_eq!(of("/").as_deref(), Some("ext4"));
    }
}
