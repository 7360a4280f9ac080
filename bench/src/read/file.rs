//! The file that is read.

use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::tally::fold;
use crate::Result;

/// A file of known content.
pub(crate) struct TestFile {
    path: PathBuf,
    size: u64,
    /// Made here, so removed here.
    made: bool,
    _folder: Option<TempDir>,
}

impl TestFile {
    /// The file at `path` if there is one; else one of `size` bytes is made there, or in a folder of its own.
    pub(crate) fn provide(path: Option<&Path>, size: usize) -> Result<Self> {
        let folder = if path.is_none() { Some(crate::scratch_folder()?) } else { None };
        let path = match (&folder, path) {
            (Some(folder), _) => folder.path().join("data"),
            (None, Some(path)) => path.to_owned(),
            (None, None) => unreachable!("without a path there is a folder"),
        };
        let made = !path.exists();
        if made {
            make(&path, size).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let size = fs::metadata(&path)?.len();
        Ok(Self { path, size, made, _folder: folder })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// What a round in pieces of `block` bytes comes to. Reading it also brings the file into the cache.
    pub(crate) fn checksum(&self, block: usize) -> Result<u64> {
        let mut file = BufReader::with_capacity(1 << 20, File::open(&self.path)?);
        let mut piece = vec![0; block];
        let mut sum = 0;
        loop {
            let mut filled = 0;
            while filled < block {
                match file.read(&mut piece[filled..])? {
                    0 => break,
                    count => filled += count,
                }
            }
            if filled == 0 {
                return Ok(sum);
            }
            sum = fold(sum, &piece[..filled]);
        }
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        if self.made {
            // In a folder of its own it goes with the folder; elsewhere nothing better can be done with a
            // failure.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes `size` bytes that follow from their place, and has them on the disk before anything is measured.
pub(crate) fn make(path: &Path, size: usize) -> std::io::Result<()> {
    let mut content: Vec<u8> =
        (0..size.div_ceil(8) as u64).flat_map(|place| word(place).to_le_bytes()).collect();
    content.truncate(size);
    let mut file = File::create_new(path)?;
    file.write_all(&content)?;
    file.sync_all()
}

/// The 64-bit word at this place (splitmix64).
fn word(place: u64) -> u64 {
    let mut z = place.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_made_and_removed_and_an_existing_one_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        {
            let file = TestFile::provide(Some(&path), 10_000).expect("made");
            assert_eq!(file.size(), 10_000);
            let content = fs::read(&path).expect("readable");
            assert_eq!(file.checksum(1024).expect("a checksum"), content.chunks(1024).fold(0, fold));
            let again = TestFile::provide(Some(&path), 5).expect("there");
            assert_eq!(again.size(), 10_000);
            drop(again);
            assert!(path.exists());
        }
        assert!(!path.exists());
    }
}
