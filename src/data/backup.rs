//! `portico backup`: portable backups of any database, and copies of a SQLite file.

use std::path::{Path, PathBuf};

use portico_server::data::{self, BackupDone, CopyError, CopySource, Counts, Header};

use super::failure::Failure;
use super::place::From;

#[derive(Debug, clap::Args)]
#[group(id = "what", required = true, multiple = false, args = ["file", "to", "check"])]
pub(super) struct Backup {
    /// The file to make: a copy of the SQLite file of a data folder.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The file to make: a portable backup, of a data folder, a PostgreSQL database, an etcd or a running control service. What was cut off
    /// is gone on with.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Read a portable backup to its end, and say whether it is whole.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// The state of this revision, instead of the current one; with --to. It is exact while it is kept as history.
    #[arg(long, value_name = "N", requires = "to", value_parser = clap::value_parser!(i64).range(1..))]
    at_revision: Option<i64>,
    /// The state of this time (2026-01-31T12:00:00Z), as near as the compaction interval before it; with --to.
    #[arg(long, value_name = "TIME", requires = "to", conflicts_with = "at_revision", value_parser = data::unix_seconds)]
    at_time: Option<i64>,
    /// Leave out the past states that --history-retention keeps longer; with --to. Any portico from the first on restores such a file.
    #[arg(long, requires = "to")]
    without_history: bool,
    #[command(flatten)]
    pub(super) from: From,
}

pub(super) async fn run(verb: &Backup) -> Result<String, Failure> {
    match (&verb.file, &verb.to, &verb.check) {
        (_, Some(to), _) => portable(verb, to).await,
        (_, _, Some(file)) => check(file),
        (Some(file), ..) => copy(verb, file).await,
        (None, None, None) => Err(Failure::Asked("a file is missing".to_owned())),
    }
}

async fn portable(verb: &Backup, to: &Path) -> Result<String, Failure> {
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
        text.push_str(&format!("\nan earlier try was gone on with behind {resumed} objects"));
    }
    if let Some(why) = began_anew {
        text.push_str(&format!("\nbegun anew: {why}"));
    }
    Ok(text)
}

/// Where the revision stood at a time, if that can be read.
async fn at_time(source: &dyn CopySource, time: i64) -> Result<i64, Failure> {
    let now = data::now();
    if time > now {
        let (time, now) = (data::time_text(time), data::time_text(now));
        return Err(Failure::Asked(format!("--at-time {time} lies in the future: it is {now} now")));
    }
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

fn check(file: &Path) -> Result<String, Failure> {
    let (header, counts) = data::check_backup(file)?;
    Ok(format!("{}: whole: {}", file.display(), described(&header, counts)))
}

/// What is in a copy, for people.
pub(super) fn content(objects: u64, past: Option<u64>) -> String {
    let past = past.map(|past| format!(", {past} past states")).unwrap_or_default();
    format!("{objects} objects{past}")
}

async fn copy(verb: &Backup, file: &Path) -> Result<String, Failure> {
    if verb.from.place.database_url.is_some() || verb.from.place.etcd()?.is_some() {
        let text = "a store in PostgreSQL or etcd is backed up with --to FILE";
        return Err(Failure::Asked(text.to_owned()));
    }
    let copied = data::backup(&data::database(&verb.from.place.data_dir), file).await?;
    let (file, data::BackedUp { store_id, epoch, revision, bytes }) = (file.display(), copied);
    Ok(format!("{file}: store {store_id}, epoch {epoch}, revision {revision}, {bytes} bytes"))
}
