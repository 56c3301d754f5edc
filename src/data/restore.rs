//! `portico restore`: restores a backup or a SQLite file, and begins a new epoch.

use std::path::{Path, PathBuf};

use portico_server::data::{
    self, BackupFile, CopyError, CopyTarget, DEFAULT_REVISION_BUMP, ETCD_REVISION_BUMP, EtcdTarget,
    FormatError, Header, PostgresTarget, RestoreOptions, RestoreSummary, SqliteTarget,
};

use super::backup::describe_content;
use super::etcd_servers;
use super::failure::Failure;
use super::location::{DataLocation, LocationArgs};

#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    #[arg(value_name = "FILE", hide = true, conflicts_with = "from")]
    file: Option<PathBuf>,
    /// Backup file to restore
    ///
    /// A SQLite file is also accepted: a copy that an earlier release made, or the database of the data folder itself, whose current
    /// content servers then accept.
    #[arg(long, value_name = "FILE", required_unless_present = "file")]
    from: Option<PathBuf>,
    /// Replace existing data: in PostgreSQL and etcd it is lost; another store's SQLite file is kept under another name
    #[arg(long)]
    force: bool,
    /// Do not restore the past states in the backup
    #[arg(long)]
    without_history: bool,
    /// Number to add to the revision of the backup [default: 1000000000, or 10000 for etcd]
    ///
    /// The number must exceed the number of writes since the backup. etcd's revision rises by one per write, so the command
    /// writes until the revision is reached, unless it is already higher.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=MAX_BUMP))]
    bump_revision: Option<i64>,
    #[command(flatten)]
    to: LocationArgs,
}

/// Maximum of `--bump-revision`: a thousand times the default, and far below the maximum of resource versions (2^63).
const MAX_BUMP: i64 = 1_000 * DEFAULT_REVISION_BUMP;

pub(super) async fn run(verb: &Restore) -> Result<String, Failure> {
    let file = verb.from.as_ref().or(verb.file.as_ref());
    let file = file.ok_or_else(|| Failure::Usage("--from FILE is missing".to_owned()))?;
    match BackupFile::open(file) {
        Ok(backup) => restore_backup(verb, file, backup.header()).await,
        Err(CopyError::Format { error: FormatError::Sqlite, .. }) => restore_sqlite(verb, file).await,
        Err(error) => Err(error.into()),
    }
}

async fn restore_backup(verb: &Restore, file: &Path, header: &Header) -> Result<String, Failure> {
    // An incomplete file is refused before anything is replaced.
    data::check_backup(file)?;
    let (target, bump): (Box<dyn CopyTarget>, i64) = match verb.to.location()? {
        DataLocation::Server(_) => return Err(restore_into_server_error()),
        DataLocation::Etcd(settings) => {
            let format = data::etcd_format(verb.to.encryption()).await?;
            let bump = verb.bump_revision.unwrap_or(ETCD_REVISION_BUMP);
            etcd_servers::refuse_served_target(&settings, &format, verb.force).await?;
            let revision = header.revision.saturating_add(bump);
            (Box::new(EtcdTarget::open(&settings, format, revision, verb.force).await?), bump)
        }
        DataLocation::Postgres(settings) => {
            let target = PostgresTarget::open(*settings, verb.force).await?;
            (Box::new(target), verb.bump_revision.unwrap_or(DEFAULT_REVISION_BUMP))
        }
        DataLocation::Folder(folder) => {
            let database = data::resolve_database(folder);
            let target = SqliteTarget::open(&database, &header.store_id, verb.force).await?;
            (Box::new(target), verb.bump_revision.unwrap_or(DEFAULT_REVISION_BUMP))
        }
    };
    let restoring = RestoreOptions { bump, history: !verb.without_history };
    let restored = data::restore_from(file, target, restoring).await?;
    let RestoreSummary { extent, objects, past_states, skipped_past_states, saved_to } = restored;
    let (identity, revision) = (extent.identity, extent.revision);
    let (store_id, epoch) = (identity.store_id, identity.epoch);
    let content = describe_content(objects, (past_states > 0).then_some(past_states));
    let mut text = format!("restored: store {store_id}, epoch {epoch}, revision {revision}, {content}");
    if skipped_past_states > 0 {
        let reason = if verb.without_history { "" } else { ": etcd keeps only its own history" };
        text.push_str(&format!("\n{skipped_past_states} past states of the backup were left out{reason}"));
    }
    if let Some(location) = saved_to {
        text.push_str(&format!("\nthe previous database is now {location}"));
    }
    Ok(text)
}

async fn restore_sqlite(verb: &Restore, file: &Path) -> Result<String, Failure> {
    let folder = match verb.to.location()? {
        DataLocation::Folder(folder) => folder,
        DataLocation::Server(_) => return Err(restore_into_server_error()),
        DataLocation::Postgres(_) | DataLocation::Etcd(_) => {
            return Err(Failure::Hinted(
                "a SQLite file can only be restored into a data folder".to_owned(),
                "restore it with --data-dir, then move it with `portico migrate`",
            ));
        }
    };
    if verb.without_history {
        let message = "--without-history does not apply to a SQLite file";
        return Err(Failure::Usage(message.to_owned()));
    }
    let database = data::database_file(folder);
    let restored =
        data::restore(file, &database, verb.bump_revision.unwrap_or(DEFAULT_REVISION_BUMP)).await?;
    let data::RestoredDatabase { store_id, epoch, revision, replaced } = restored;
    let mut text = format!("{}: store {store_id}, epoch {epoch}, revision {revision}", database.display());
    if let Some(replaced) = replaced {
        text.push_str(&format!("\nthe previous database is now {}", replaced.display()));
    }
    Ok(text)
}

fn restore_into_server_error() -> Failure {
    Failure::Hinted(
        "a backup cannot be restored into a running control service".to_owned(),
        "stop it, and name its database: --data-dir, --database-url or --etcd-servers",
    )
}
