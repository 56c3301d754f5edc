//! Rotated files: their names, and the selection of those that are kept (lumberjack's `millRunOnce`).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::rotation::{Rotation, copy_owner};

const COMPRESSED: &str = ".gz";
/// Length of the time in a name: `2006-01-02T15-04-05.000`.
const TIME_BYTES: usize = 23;

/// Rotated file.
struct Backup {
    /// File name without the suffix of compressed files.
    name: String,
    rotated_at: Timestamp,
    compressed: bool,
}

/// Returns the name for a file that is rotated now.
pub(super) fn backup_path(path: &Path, now: Timestamp) -> PathBuf {
    let (prefix, extension) = name_parts(path);
    path.with_file_name(format!("{prefix}{}{extension}", now.strftime("%Y-%m-%dT%H-%M-%S.%3f")))
}

/// Removes backups beyond the maximum number or age, and compresses the rest if the rotation says so.
pub(super) fn clean_up(path: &Path, rotation: &Rotation, now: Timestamp) -> io::Result<()> {
    if rotation.max_backups == 0 && rotation.max_age_days == 0 && !rotation.compress {
        return Ok(());
    }
    let mut backup_files = backups(path)?;
    backup_files.sort_by(|a, b| b.rotated_at.cmp(&a.rotated_at).then_with(|| a.name.cmp(&b.name)));
    let cutoff = now.saturating_sub(SignedDuration::from_hours(24 * i64::from(rotation.max_age_days)));
    let cutoff = cutoff.unwrap_or(Timestamp::MIN);
    let (mut kept_count, mut last) = (0, String::new());
    for backup in backup_files {
        // A crash may leave a file and its compressed copy; they count as one.
        if backup.name != last {
            (kept_count, last) = (kept_count + 1, backup.name.clone());
        }
        let too_many = rotation.max_backups > 0 && kept_count > rotation.max_backups;
        let too_old = rotation.max_age_days > 0 && backup.rotated_at < cutoff;
        if too_many || too_old {
            fs::remove_file(backup.path(path))?;
        } else if rotation.compress && !backup.compressed {
            compress(&backup.path(path))?;
        }
    }
    Ok(())
}

impl Backup {
    fn path(&self, log_path: &Path) -> PathBuf {
        log_path.with_file_name(format!("{}{}", self.name, if self.compressed { COMPRESSED } else { "" }))
    }
}

fn backups(path: &Path) -> io::Result<Vec<Backup>> {
    let (prefix, extension) = name_parts(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut backup_files = Vec::new();
    for entry in fs::read_dir(folder.unwrap_or_else(|| Path::new(".")))? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let bare = name.strip_suffix(COMPRESSED);
        let compressed = bare.is_some();
        let bare = bare.unwrap_or(&name);
        let time = bare.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(&extension));
        if let Some(rotated_at) = time.and_then(parse_time) {
            backup_files.push(Backup { name: bare.to_owned(), rotated_at, compressed });
        }
    }
    Ok(backup_files)
}

fn parse_time(time: &str) -> Option<Timestamp> {
    let (date, clock) = time.split_once('T').filter(|_| time.len() == TIME_BYTES)?;
    let civil = DateTime::from_str(&format!("{date}T{}", clock.replace('-', ":"))).ok()?;
    TimeZone::UTC.to_timestamp(civil).ok()
}

/// Returns the parts of the name before and after the time.
fn name_parts(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let extension = text(path.extension());
    let extension = if extension.is_empty() { extension } else { format!(".{extension}") };
    (format!("{}-", text(path.file_stem())), extension)
}

fn compress(path: &Path) -> io::Result<()> {
    let mut target = path.as_os_str().to_owned();
    target.push(COMPRESSED);
    let target = PathBuf::from(target);
    let compressed = write_compressed(path, &target);
    match compressed {
        Ok(()) => fs::remove_file(path),
        Err(error) => {
            // An incomplete copy is useless, and the original still exists.
            let _ = fs::remove_file(&target);
            Err(error)
        }
    }
}

fn write_compressed(path: &Path, target: &Path) -> io::Result<()> {
    let mut source = File::open(path)?;
    let metadata = source.metadata()?;
    let file = File::create(target)?;
    file.set_permissions(metadata.permissions())?;
    copy_owner(&metadata, target);
    let mut encoder = GzEncoder::new(file, Compression::default());
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Creates backups with these names on January 10, with 1 in the name of the newest, and returns the files left by a cleanup.
    fn remaining(rotation: &Rotation, names: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(folder.path().join(name), name).unwrap();
        }
        clean_up(&folder.path().join("a.log"), rotation, "2026-01-10T00:00:00Z".parse().unwrap()).unwrap();
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut remaining: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        remaining.sort();
        remaining
    }

    const OLD: [&str; 5] = [
        "a-2026-01-01T00-00-00.000.log",
        "a-2026-01-05T00-00-00.000.log.gz",
        "a-2026-01-09T00-00-00.000.log",
        "a-nonsense.log",
        "b-2026-01-01T00-00-00.000.log",
    ];

    #[test]
    fn a_backup_is_named_after_the_time_of_rotation() {
        let at = "2026-01-02T03:04:05.0678Z".parse().unwrap();
        let named = |path: &str| backup_path(Path::new(path), at).display().to_string();
        assert_eq!(named("/x/audit.log"), "/x/audit-2026-01-02T03-04-05.067.log");
        assert_eq!(named("audit"), "audit-2026-01-02T03-04-05.067");
        assert_eq!(parse_time("2026-01-02T03-04-05.067"), "2026-01-02T03:04:05.067Z".parse().ok());
    }

    #[test]
    fn the_oldest_backups_are_removed_and_unrelated_files_are_not() {
        assert_eq!(remaining(&Rotation::default(), &OLD), OLD);
        let two = Rotation { max_backups: 2, ..Rotation::default() };
        assert_eq!(remaining(&two, &OLD), OLD[1..]);
        let days = Rotation { max_age_days: 3, ..Rotation::default() };
        assert_eq!(remaining(&days, &OLD), OLD[2..]);
    }

    #[test]
    fn remaining_backups_are_compressed_once() {
        let compress = Rotation { max_backups: 2, compress: true, ..Rotation::default() };
        let expected = [OLD[1], "a-2026-01-09T00-00-00.000.log.gz", OLD[3], OLD[4]];
        assert_eq!(remaining(&compress, &OLD), expected);
    }

    #[test]
    fn a_compressed_file_has_the_original_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "text").unwrap();
        compress(&path).unwrap();
        let mut text = String::new();
        let packed = File::open(folder.path().join("a.gz")).unwrap();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), path.exists()), ("text", false));
    }
}
