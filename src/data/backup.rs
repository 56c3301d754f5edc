//! `portico backup`: writes and checks backups, whose format is the same for all databases.

use std::path::{Path, PathBuf};

use portico_server::data::{self, BackupDone, CopyError, CopySource, Counts, Header};

use super::failure::Failure;
use super::location::Location;

#[derive(Debug, clap::Args)]
pub(crate) struct Backup {
    #[arg(value_name = "FILE", hide = true, conflicts_with_all = ["to", "check"])]
    file: Option<PathBuf>,
    /// Backup file to write; the file must not exist
    #[arg(long, value_name = "FILE", required_unless_present_any = ["file", "check"], conflicts_with = "check")]
    to: Option<PathBuf>,
    /// Check that this backup file is complete and undamaged, and write nothing
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Back up this revision instead of the current revision; history must still contain the revision
    #[arg(long, value_name = "N", conflicts_with = "check", value_parser = clap::value_parser!(i64).range(1..))]
    at_revision: Option<i64>,
    /// Back up the state at this time (2026-01-31T12:00:00Z), or at most one --compaction-interval before
    #[arg(long, value_name = "TIME", conflicts_with_all = ["at_revision", "check"], value_parser = data::unix_seconds)]
    at_time: Option<i64>,
    /// Leave out past states that --history-retention keeps; every release can restore such a file
    #[arg(long, conflicts_with = "check")]
    without_history: bool,
    #[command(flatten)]
    from: Location,
}

pub(super) async fn run(verb: &Backup) -> Result<String, Failure> {
    match (verb.to.as_ref().or(verb.file.as_ref()), &verb.check) {
        (Some(to), _) => back_up(verb, to).await,
        (_, Some(file)) => check(verb, file),
        (None, None) => Err(Failure::Usage("--to FILE is missing".to_owned())),
    }
}

async fn back_up(verb: &Backup, to: &Path) -> Result<String, Failure> {
    if let Some(time) = verb.at_time {
        refuse_future(time, data::now())?;
    }
    let source = verb.from.source().await?;
    let revision = match verb.at_time {
        Some(time) => Some(at_time(&*source, time).await?),
        None => verb.at_revision,
    };
    let history = !verb.without_history;
    let (now, portico) = (data::now(), env!("CARGO_PKG_VERSION"));
    let done = data::back_up(&*source, &data::Backup { file: to, revision, history, now, portico }).await?;
    let BackupDone { header, counts, bytes, resumed, began_anew } = done;
    let mut text = format!("{}: {}, {bytes} bytes", to.display(), described(&header, counts));
    if resumed > 0 {
        text.push_str(&format!("\ncontinued an interrupted backup after {resumed} objects"));
    }
    if let Some(why) = began_anew {
        text.push_str(&format!("\nstarted again: {why}"));
    }
    Ok(text)
}

fn refuse_future(time: i64, now: i64) -> Result<(), Failure> {
    if time <= now {
        return Ok(());
    }
    let (time, now) = (data::time_text(time), data::time_text(now));
    Err(Failure::Usage(format!("--at-time {time} is in the future: the current time is {now}")))
}

/// Returns the revision of a time, or an error if history no longer contains the revision.
async fn at_time(source: &dyn CopySource, time: i64) -> Result<i64, Failure> {
    let (revision, extent) = (source.revision_at(time).await?, source.extent().await?);
    if revision < extent.oldest.max(1) {
        return Err(CopyError::UnknownTime { oldest: extent.oldest }.into());
    }
    Ok(revision)
}

fn described(header: &Header, counts: Counts) -> String {
    let Header { store_id, epoch, revision, created_at, portico } = header;
    let (at, content) = (data::time_text(*created_at), content(counts.objects, counts.past));
    format!("store {store_id}, epoch {epoch}, revision {revision}, {content}, made {at} by portico {portico}")
}

fn check(verb: &Backup, file: &Path) -> Result<String, Failure> {
    if let Some(flag) = verb.from.first_flag() {
        return Err(Failure::Usage(format!("{flag} cannot be used with --check, which reads only the file")));
    }
    let (header, counts) = data::check_backup(file)?;
    Ok(format!("{}: complete: {}", file.display(), described(&header, counts)))
}

/// Returns a text with the numbers of objects and past states in a copy.
pub(super) fn content(objects: u64, past: Option<u64>) -> String {
    let past = past.map(|past| format!(", {past} past states")).unwrap_or_default();
    format!("{objects} objects{past}")
}
