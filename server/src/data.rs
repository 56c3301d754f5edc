//! A data folder without a server: backups, restores, and looking after its database.

mod copies;
mod servers;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portico_kinds::{Kinds, RuntimeConfig};
use portico_machinery::expiration::Evaluator;
use portico_registry::KindIndexer;
pub use portico_store::{
    BackupError, DEFAULT_REVISION_BUMP, Examination, ExportEnd, OpenError, Restored, Unreadable, restore,
};
use portico_store::{Doctor, Seal};

pub use self::copies::{OwnedStore, database_in, known, now, opener, time_text, unix_seconds};
pub use self::servers::{FRESH_SECONDS, Server, servers};
pub use portico_store::{
    ArchiveAt, ArchivePart, Backup, BackupDone, BackupFile, Changes, CopyError, CopySource, CopyTarget,
    Counts, EtcdSource, EtcdSwitch, EtcdTarget, Extent, FormatError, Header, Identity, Key,
    Known as EtcdKnown, Migrated, Migration, MigrationStep, PostgresSource, PostgresSwitch, PostgresTarget,
    RestoredFrom, Restoring, SqliteSource, SqliteTarget, StoredState, WriteSwitch, back_up, check_backup,
    migrate, restore_from,
};

/// How far a restore into etcd moves the revision by default: each is a write there, unless etcd is further already.
pub const ETCD_REVISION_BUMP: i64 = 10_000;
/// The database's file in the data folder.
const DATABASE: &str = "portico.db";
/// The group of records that are no objects of the API.
const INTERNAL: &str = "portico.dev";

/// Why a database cannot be looked after.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// It cannot be opened or read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The embedded descriptions of kinds do not load: a broken build.
    #[error("kinds: {0}")]
    Kinds(#[from] portico_kinds::LoadError),
    /// The encryption configuration.
    #[error("--encryption-provider-config: {0}")]
    Encryption(#[from] crate::encryption::EncryptionError),
    /// There is no database.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
}

/// What an export has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Objects that were written.
    pub objects: u64,
    /// What it could not write.
    pub end: ExportEnd,
}

/// The database of a data folder.
#[must_use]
pub fn database(data_dir: &Path) -> PathBuf {
    data_dir.join(DATABASE)
}

/// A data folder to be looked after.
pub struct DataFolder {
    database: PathBuf,
    indexer: KindIndexer,
    /// What opens values that are sealed.
    opener: Option<Arc<Seal>>,
}

impl DataFolder {
    /// Of this folder; the release decides which kinds are known.
    ///
    /// # Errors
    /// [`DataError::Missing`].
    pub fn new(data_dir: &Path, release: &Evaluator) -> Result<Self, DataError> {
        let database = database(data_dir);
        if !database.exists() {
            return Err(DataError::Missing(database));
        }
        let kinds = Kinds::serving(release, &RuntimeConfig::default())?;
        Ok(Self { database, indexer: portico_resources::table().indexer(&kinds), opener: None })
    }

    /// The same, whose sealed values are opened as this file of `--encryption-provider-config` says.
    ///
    /// # Errors
    /// [`DataError::Encryption`].
    pub fn opening_with(self, encryption_config: &Path) -> Result<Self, DataError> {
        Ok(Self { opener: Some(crate::encryption::opener(encryption_config)?), ..self })
    }

    fn doctor(&self) -> Doctor<'_> {
        let doctor = Doctor::new(&self.database, &self.indexer);
        match &self.opener {
            Some(seal) => doctor.opening_with(Arc::clone(seal)),
            None => doctor,
        }
    }

    /// Looks for what is wrong with the database; writes nothing, and may run beside a server.
    ///
    /// # Errors
    /// [`DataError::Open`].
    pub async fn examine(&self) -> Result<Examination, DataError> {
        Ok(self.doctor().examine().await?)
    }

    /// Writes the current state of every object that can be read, as one line of JSON each, in the order of resources,
    /// namespaces and names.
    ///
    /// # Errors
    /// [`DataError::Open`], those of `out` included.
    pub async fn export(&self, out: &mut (impl Write + Send)) -> Result<Exported, DataError> {
        let (doctor, mut objects) = (self.doctor(), 0);
        let written = doctor.export(|record| {
            if record.key.resource().group == INTERNAL {
                return Ok(());
            }
            objects += 1;
            out.write_all(record.value.json())?;
            out.write_all(b"\n")
        });
        let end = written.await?;
        Ok(Exported { objects, end })
    }

    /// Removes the objects that cannot be read; nobody else may have the database open.
    ///
    /// # Errors
    /// [`DataError::Open`].
    pub async fn remove_unreadable(&self) -> Result<Vec<Unreadable>, DataError> {
        Ok(self.doctor().remove_unreadable().await?)
    }
}
