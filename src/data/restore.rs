//! `portico restore`: takes a backup of either form into service, as a new epoch.

use std::path::{Path, PathBuf};

use portico_server::data::{
    self, BackupFile, CopyError, CopyTarget, DEFAULT_REVISION_BUMP, ETCD_REVISION_BUMP, EtcdTarget,
    FormatError, Header, PostgresTarget, RestoredFrom, Restoring, SqliteTarget,
};

use super::backup::content;
use super::failure::Failure;
use super::place::Place;
use super::serving;

#[derive(Debug, clap::Args)]
#[group(id = "what", required = true, multiple = false, args = ["file", "from"])]
pub(super) struct Restore {
    /// What to restore: a portable backup, or a copy of a SQLite file; may be the database itself, that is to go on as it is.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    pub(super) to: Place,
    /// Replace what is in a PostgreSQL database or under a prefix of etcd, which is not kept, or the database of another store in a
    /// folder, which is.
    #[arg(long)]
    force: bool,
    /// Leave out the past states that --history-retention had kept longer; of a portable backup.
    #[arg(long)]
    without_history: bool,
    /// How far resource versions are moved past the last one that is known: further than writes went on after the backup. By default
    /// 1000000000, and 10000 in etcd, where it takes as many writes unless etcd is further already.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=MAX_BUMP))]
    bump_revision: Option<i64>,
    /// What values are sealed with, for a restore into etcd: what is sealed in the backup is sealed anew, as etcd keeps it.
    #[arg(long, value_name = "FILE", env = "PORTICO_ENCRYPTION_PROVIDER_CONFIG")]
    encryption_provider_config: Option<PathBuf>,
}

/// A thousand times the default, and far from where resource versions end (2^63).
const MAX_BUMP: i64 = 1_000 * DEFAULT_REVISION_BUMP;

pub(super) async fn run(verb: &Restore) -> Result<String, Failure> {
    let file = verb.from.as_ref().or(verb.file.as_ref());
    let file = file.ok_or_else(|| Failure::Asked("a file is missing".to_owned()))?;
    match BackupFile::open(file) {
        Ok(backup) => portable(verb, file, backup.header()).await,
        Err(CopyError::Format { error: FormatError::Sqlite, .. }) => sqlite(verb, file).await,
        Err(error) => Err(error.into()),
    }
}

async fn portable(verb: &Restore, file: &Path, header: &Header) -> Result<String, Failure> {
    // Nothing is begun for a file that is not whole.
    data::check_backup(file)?;
    let (target, bump): (Box<dyn CopyTarget>, i64) = match (verb.to.etcd()?, verb.to.postgres()?) {
        (Some(settings), _) => {
            let known = data::known(verb.encryption_provider_config.as_deref()).await?;
            let bump = verb.bump_revision.unwrap_or(ETCD_REVISION_BUMP);
            serving::refuse_into(&settings, &known, verb.force).await?;
            let revision = header.revision.saturating_add(bump);
            (Box::new(EtcdTarget::open(&settings, known, revision, verb.force).await?), bump)
        }
        (None, Some(settings)) => {
            let target = PostgresTarget::open(settings, verb.force).await?;
            (Box::new(target), verb.bump_revision.unwrap_or(DEFAULT_REVISION_BUMP))
        }
        (None, None) => {
            let database = data::database_in(&verb.to.data_dir);
            let target = SqliteTarget::open(&database, &header.store_id, verb.force).await?;
            (Box::new(target), verb.bump_revision.unwrap_or(DEFAULT_REVISION_BUMP))
        }
    };
    let restoring = Restoring { bump, history: !verb.without_history };
    let restored = data::restore_from(file, target, restoring).await?;
    let RestoredFrom { becomes, objects, past, left_behind, kept } = restored;
    let (identity, revision) = (becomes.identity, becomes.revision);
    let (store_id, epoch) = (identity.store_id, identity.epoch);
    let content = content(objects, (past > 0).then_some(past));
    let mut text = format!("restored: store {store_id}, epoch {epoch}, revision {revision}, {content}");
    if left_behind > 0 {
        let why = if verb.without_history { "" } else { ": etcd has only its own history" };
        text.push_str(&format!("\n{left_behind} past states of the backup were left behind{why}"));
    }
    if let Some(kept) = kept {
        text.push_str(&format!("\nthe database that was there before is {kept}"));
    }
    Ok(text)
}

async fn sqlite(verb: &Restore, file: &Path) -> Result<String, Failure> {
    if verb.to.database_url.is_some() || verb.to.etcd()?.is_some() {
        let text =
            "a SQLite file is restored into a data folder; `portico migrate` moves it from there elsewhere";
        return Err(Failure::Asked(text.to_owned()));
    }
    if verb.without_history {
        return Err(Failure::Asked("--without-history is about portable backups".to_owned()));
    }
    let database = data::database(&verb.to.data_dir);
    let restored =
        data::restore(file, &database, verb.bump_revision.unwrap_or(DEFAULT_REVISION_BUMP)).await?;
    let data::Restored { store_id, epoch, revision, replaced } = restored;
    let mut text = format!("{}: store {store_id}, epoch {epoch}, revision {revision}", database.display());
    if let Some(replaced) = replaced {
        text.push_str(&format!("\nthe database that was there before is {}", replaced.display()));
    }
    Ok(text)
}
