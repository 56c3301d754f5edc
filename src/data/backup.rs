//! `portico backup`: writes and checks backups, whose format is the same for all databases.

use std::path::{Path, PathBuf};

use portico_server::data::{self, BackupCounts, BackupSummary, CopyError, CopySource, Header};

use super::failure::Failure;
use super::location::LocationArgs;

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
    from: LocationArgs,
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
        refuse_future(time, data::unix_now())?;
    }
    let source = verb.from.source().await?;
    let revision = match verb.at_time {
        Some(time) => Some(at_time(&*source, time).await?),
        None => verb.at_revision,
    };
    let history = !verb.without_history;
    let (now, portico) = (data::unix_now(), env!("CARGO_PKG_VERSION"));
    let summary =
        data::back_up(&*source, &data::Backup { file: to, revision, history, now, portico }).await?;
    let BackupSummary { header, counts, bytes, resumed_objects, restart_reason } = summary;
    let mut text = format!("{}: {}, {bytes} bytes", to.display(), describe(&header, counts));
    if resumed_objects > 0 {
        text.push_str(&format!("\ncontinued an interrupted backup after {resumed_objects} objects"));
    }
    if let Some(reason) = restart_reason {
        text.push_str(&format!("\nstarted again: {reason}"));
    }
    Ok(text)
}

fn refuse_future(time: i64, now: i64) -> Result<(), Failure> {
    if time <= now {
        return Ok(());
    }
    let (time, now) = (data::format_time(time), data::format_time(now));
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

fn describe(header: &Header, counts: BackupCounts) -> String {
    let Header { store_id, epoch, revision, created_at, portico } = header;
    let (at, content) =
        (data::format_time(*created_at), describe_content(counts.objects, counts.past_states));
    format!("store {store_id}, epoch {epoch}, revision {revision}, {content}, made {at} by portico {portico}")
}

fn check(verb: &Backup, file: &Path) -> Result<String, Failure> {
    if let Some(flag) = verb.from.first_flag() {
        return Err(Failure::Usage(format!("{flag} cannot be used with --check, which reads only the file")));
    }
    let (header, counts) = data::check_backup(file)?;
    Ok(format!("{}: complete: {}", file.display(), describe(&header, counts)))
}

/// Returns a text with the numbers of objects and past states in a copy.
pub(super) fn describe_content(objects: u64, past: Option<u64>) -> String {
    let past = past.map(|past| format!(", {past} past states")).unwrap_or_default();
    format!("{objects} objects{past}")
}
