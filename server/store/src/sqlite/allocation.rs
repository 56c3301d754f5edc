//! Allocation of disk blocks for a file before data is written to them, and free space of a file system.

use std::fs::File;
use std::io;
use std::path::Path;

/// Extends a file to `bytes`, and allocates disk blocks for the added part. Does nothing if the file has that length. After an
/// error the length is unchanged. Blocks.
pub(super) fn extend(file: &File, bytes: u64) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length >= bytes {
        return Ok(());
    }
    let extended = allocate(file, length, bytes);
    if extended.is_err() {
        file.set_len(length)?;
    }
    extended
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, from: u64, to: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::empty(), from, to - from) {
        // Some file systems do not support this.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => write_zeros(file, from, to),
        done => done.map_err(io::Error::from),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(file: &File, from: u64, to: u64) -> io::Result<()> {
    write_zeros(file, from, to)
}

/// Overwrites a part of a file with zeros. Blocks.
pub(super) fn write_zeros(mut file: &File, from: u64, to: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    file.seek(SeekFrom::Start(from))?;
    let mut remaining = to - from;
    while remaining > 0 {
        let length = usize::try_from(remaining).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all(&ZEROS[..length])?;
        remaining -= length as u64;
    }
    Ok(())
}

/// Size of a file system.
pub(super) struct Disk {
    pub(super) bytes: u64,
    pub(super) available: u64,
}

impl Disk {
    /// Returns the size of the file system of a file; `None` if it does not report it.
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Option<Self> {
        let stats = rustix::fs::statvfs(super::files::folder_of(path)).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(stats.f_frsize);
        Some(Self { bytes: bytes(stats.f_blocks), available: bytes(stats.f_bavail) })
            .filter(|disk| disk.bytes > 0)
    }

    #[cfg(not(unix))]
    pub(super) fn of(_: &Path) -> Option<Self> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_file_is_extended_with_zeros_and_never_truncated() {
        for grow in [extend, |file: &File, to| write_zeros(file, file.metadata()?.len(), to)] {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, b"abc").unwrap();
            grow(&file, 200_000).unwrap();
            extend(&file, 5).unwrap();
            let mut content = Vec::new();
            io::Seek::rewind(&mut file).unwrap();
            file.read_to_end(&mut content).unwrap();
            assert_eq!((content.len(), &content[..3]), (200_000, &b"abc"[..]));
            assert!(content[3..].iter().all(|byte| *byte == 0));
        }
    }
}
