//! Reads the files that settings name. Anything but a regular file of bounded size is an error: opening a pipe would block until
//! another process writes to it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::platform;

/// Size of a file that a setting names, which must be a regular file.
///
/// Limit (Logs, traces and files, bytes): the setting is rejected; a file that is reloaded later is ignored.
pub const MAX_BYTES: u64 = 64 << 20;

/// Returns the contents of a file.
///
/// # Errors
/// Returns the error of the system, or an error if the file is not a regular file or is larger than [`MAX_BYTES`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Checks the open file, because the path may name another file by then.
    let file = platform::non_blocking(File::options().read(true)).open(path)?;
    let metadata = file.metadata()?;
    // Reading a folder fails with the error of the system.
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    if metadata.len() <= MAX_BYTES {
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    }
    if metadata.len().max(bytes.len() as u64) > MAX_BYTES {
        let message = format!("larger than {} MiB", MAX_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Returns the contents of a file as text.
///
/// # Errors
/// Returns the errors of [`read`], and an error if the file is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use portico_gostd::os::error_text;

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("text"), "a: b").unwrap();
        std::fs::write(path("binary"), [0xff]).unwrap();
        // A sparse file, which occupies no disk space.
        File::create(path("large")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RUSR).unwrap();
        for (name, result) in [
            ("text", Ok("a: b")),
            ("binary", Err("not valid UTF-8")),
            ("large", Err("larger than 64 MiB")),
            ("pipe", Err("not a regular file")),
            ("none", Err("no such file or directory")),
            ("", Err("is a directory")),
        ] {
            let read = read_text(&path(name)).map_err(|error| error_text(&error));
            assert_eq!(read, result.map(str::to_owned).map_err(str::to_owned), "{name}");
        }
    }
}
