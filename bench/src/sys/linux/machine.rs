//! What a reader of the figures has to know about the machine.

use std::fs;
use std::path::Path;

/// One line: kernel, CPUs and load. Figures of a loaded machine are not worth much, so the line says so.
pub(crate) fn describe() -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "?".into());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    let cpus = super::cpus::allowed_cpus().len();
    let note = match load.parse::<f64>() {
        Ok(value) if value > 0.3 * cpus as f64 => " (not a quiet machine)",
        _ => "",
    };
    format!(
        "Linux {} on {}, {cpus} CPUs, load {load} over the last minute{note}",
        kernel.trim(),
        std::env::consts::ARCH
    )
}

/// The type of the file system that `path` is on, by its mount ("ext4"), or "?".
pub(crate) fn file_system(path: &Path) -> String {
    let (Ok(path), Ok(mounts)) = (path.canonicalize(), fs::read_to_string("/proc/self/mountinfo")) else {
        return "?".into();
    };
    of_mount(&path, &mounts).unwrap_or_else(|| "?".into())
}

/// The last of the longest mount points above `path`: later mounts hide earlier ones.
fn of_mount(path: &Path, mounts: &str) -> Option<String> {
    mounts
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let point = Path::new(before.split(' ').nth(4)?);
            path.starts_with(point).then(|| (point.as_os_str().len(), after.split(' ').next().unwrap_or("?")))
        })
        .max_by_key(|&(length, _)| length)
        .map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_counts() {
        let mounts = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                      30 22 0:25 / /tmp rw - tmpfs tmpfs rw\n\
                      31 22 0:26 / /tmp rw - overlay overlay rw\n";
        assert_eq!(of_mount(Path::new("/home/file"), mounts).as_deref(), Some("ext4"));
        assert_eq!(of_mount(Path::new("/tmp/file"), mounts).as_deref(), Some("overlay"));
        assert_eq!(of_mount(Path::new("/tmpfile"), mounts).as_deref(), Some("ext4"));
    }
}
