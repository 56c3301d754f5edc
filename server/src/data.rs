//! Operations on a data folder without a server: backups, restores, and maintenance of its database.

mod copy_tools;
mod servers;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portico_kinds::{Kinds, RuntimeConfig};
use portico_machinery::expiration::ExpirationEvaluator;
use portico_registry::KindIndexer;
pub use portico_store::{
    BackupError, DEFAULT_REVISION_BUMP, Examination, ExportSummary, OpenError, RestoredDatabase, Unreadable,
    restore,
};
use portico_store::{Doctor, Seal};

pub use self::copy_tools::{
    ExclusiveStore, etcd_format, format_time, load_seal, resolve_database, unix_now, unix_seconds,
};
pub use self::servers::{FRESH_SECONDS, Server, servers};
pub use portico_store::{
    ArchiveCursor, ArchivePart, Backup, BackupCounts, BackupFile, BackupSummary, Changes, CopyError,
    CopySource, CopyTarget, EtcdSource, EtcdSwitch, EtcdTarget, FormatError, Header, Identity, Key,
    Migration, MigrationStep, MigrationSummary, ObjectCodec as EtcdKnown, PostgresSource, PostgresSwitch,
    PostgresTarget, RestoreOptions, RestoreSummary, SqliteSource, SqliteTarget, StoreExtent, StoredState,
    WriteSwitch, back_up, check_backup, migrate, restore_from,
};

/// Default increase of the revision by a restore into etcd. Each revision is a write, unless the revision of etcd
/// is already higher.
pub const ETCD_REVISION_BUMP: i64 = 10_000;
/// File name of the database in the data folder.
const DATABASE: &str = "portico.db";
/// Group of internal records, which are not objects of the API.
const INTERNAL: &str = "portico.dev";

/// Error of an operation on a data folder.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The database cannot be opened or read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The embedded descriptions of kinds cannot be loaded: the build is broken.
    #[error("kinds: {0}")]
    Kinds(#[from] portico_kinds::LoadError),
    /// The encryption configuration cannot be used.
    #[error("--encryption-provider-config: {0}")]
    Encryption(#[from] crate::encryption::EncryptionError),
    /// The database does not exist.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
}

/// Result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportResult {
    /// Number of objects that were written.
    pub objects: u64,
    /// Objects that could not be written.
    pub end: ExportSummary,
}

/// Returns the path of the database in a data folder.
#[must_use]
pub fn database_file(data_dir: &Path) -> PathBuf {
    data_dir.join(DATABASE)
}

/// Data folder that no server uses.
pub struct DataFolder {
    database: PathBuf,
    indexer: KindIndexer,
    /// Seal with which encrypted values are opened.
    seal: Option<Arc<Seal>>,
}

impl DataFolder {
    /// Opens a data folder; the release determines the known kinds.
    ///
    /// # Errors
    /// [`DataError::Missing`].
    pub fn new(data_dir: &Path, release: &ExpirationEvaluator) -> Result<Self, DataError> {
        let database = database_file(data_dir);
        if !database.exists() {
            return Err(DataError::Missing(database));
        }
        let kinds = Kinds::enabled(release, &RuntimeConfig::default())?;
        Ok(Self { database, indexer: portico_resources::table().indexer(&kinds), seal: None })
    }

    /// Sets the file of `--encryption-provider-config` with which encrypted values are opened.
    ///
    /// # Errors
    /// [`DataError::Encryption`].
    pub fn with_encryption_config(self, encryption_config: &Path) -> Result<Self, DataError> {
        Ok(Self { seal: Some(crate::encryption::load_seal(encryption_config)?), ..self })
    }

    fn doctor(&self) -> Doctor<'_> {
        let doctor = Doctor::new(&self.database, &self.indexer);
        match &self.seal {
            Some(seal) => doctor.with_seal(Arc::clone(seal)),
            None => doctor,
        }
    }

    /// Checks the database for errors; writes nothing, and can run while a server uses the database.
    ///
    /// # Errors
    /// [`DataError::Open`].
    pub async fn examine(&self) -> Result<Examination, DataError> {
        Ok(self.doctor().examine().await?)
    }

    /// Writes the current state of every readable object as a line of JSON, sorted by resource, namespace and name.
    ///
    /// # Errors
    /// [`DataError::Open`], also for errors of `out`.
    pub async fn export(&self, out: &mut (impl Write + Send)) -> Result<ExportResult, DataError> {
        let (doctor, mut objects) = (self.doctor(), 0);
        let export = doctor.export(|record| {
            if record.key.resource().group == INTERNAL {
                return Ok(());
            }
            objects += 1;
            out.write_all(record.value.json())?;
            out.write_all(b"\n")
        });
        let end = export.await?;
        Ok(ExportResult { objects, end })
    }

    /// Removes unreadable objects. No other process may have the database open.
    ///
    /// # Errors
    /// [`DataError::Open`].
    pub async fn remove_unreadable(&self) -> Result<Vec<Unreadable>, DataError> {
        Ok(self.doctor().remove_unreadable().await?)
    }
}
