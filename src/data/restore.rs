//! `portico restore`: takes a backup of either form into service, as a new epoch.

use std::path::{Path, PathBuf};

use portico_server::data::{
    self, BackupFile, CopyError, CopyTarget, DEFAULT_REVISION_BUMP, FormatError, PostgresTarget,
    RestoredFrom, SqliteTarget,
};

use super::failure::Failure;
use super::place::Place;

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
    to: Place,
    /// Replace what is in a PostgreSQL database, which is not kept, or the database of another store in a folder, which is.
    #[arg(long)]
    force: bool,
    /// How far resource versions are moved past the last one that is known: further than writes went on after the backup.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_REVISION_BUMP, value_parser = clap::value_parser!(i64).range(1..=MAX_BUMP))]
    bump_revision: i64,
}

/// A thousand times the default, and far from where resource versions end (2^63).
const MAX_BUMP: i64 = 1_000 * DEFAULT_REVISION_BUMP;

pub(super) async fn run(verb: &Restore) -> Result<String, Failure> {
    let file = verb.from.as_ref().or(verb.file.as_ref());
    let file = file.ok_or_else(|| Failure::Asked("a file is missing".to_owned()))?;
    match BackupFile::open(file) {
        Ok(backup) => portable(verb, file, &backup.header().store_id).await,
        Err(CopyError::Format { error: FormatError::Sqlite, .. }) => sqlite(verb, file).await,
        Err(error) => Err(error.into()),
    }
}

async fn portable(verb: &Restore, file: &Path, store_id: &str) -> Result<String, Failure> {
    // Nothing is begun for a file that is not whole.
    data::check_backup(file)?;
    let target: Box<dyn CopyTarget> = match verb.to.postgres()? {
        Some(settings) => Box::new(PostgresTarget::open(settings, verb.force).await?),
        None => {
            let database = data::database_in(&verb.to.data_dir);
            Box::new(SqliteTarget::open(&database, store_id, verb.force).await?)
        }
    };
    let RestoredFrom { becomes, objects, kept } =
        data::restore_from(file, target, verb.bump_revision).await?;
    let (identity, revision) = (becomes.identity, becomes.revision);
    let (store_id, epoch) = (identity.store_id, identity.epoch);
    let mut text =
        format!("restored: store {store_id}, epoch {epoch}, revision {revision}, {objects} objects");
    if let Some(kept) = kept {
        text.push_str(&format!("\nthe database that was there before is {kept}"));
    }
    Ok(text)
}

async fn sqlite(verb: &Restore, file: &Path) -> Result<String, Failure> {
    if verb.to.database_url.is_some() {
        let text = "a SQLite file is restored into a data folder; `portico migrate` moves it from there to PostgreSQL";
        return Err(Failure::Asked(text.to_owned()));
    }
    let database = data::database(&verb.to.data_dir);
    let restored = data::restore(file, &database, verb.bump_revision).await?;
    let data::Restored { store_id, epoch, revision, replaced } = restored;
    let mut text = format!("{}: store {store_id}, epoch {epoch}, revision {revision}", database.display());
    if let Some(replaced) = replaced {
        text.push_str(&format!("\nthe database that was there before is {}", replaced.display()));
    }
    Ok(text)
}
