//! A data folder without a server: backups, restores, and looking after its database.

use std::io::Write;
use std::path::{Path, PathBuf};

use portico_kinds::{Kinds, RuntimeConfig};
use portico_machinery::expiration::Evaluator;
use portico_registry::KindIndexer;
use portico_store::Doctor;
pub use portico_store::{
    BackedUp, BackupError, DEFAULT_REVISION_BUMP, Examination, OpenError, Restored, Unreadable, backup,
    restore,
};

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
    /// There is no database.
    #[error("{} is not there", .0.display())]
    Missing(PathBuf),
}

/// What an export has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Objects that were written.
    pub objects: u64,
    /// Objects that could not be read.
    pub left_out: u64,
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
        Ok(Self { database, indexer: portico_resources::table().indexer(&kinds) })
    }

    fn doctor(&self) -> Doctor<'_> {
        Doctor::new(&self.database, &self.indexer)
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
        let left_out = written.await?;
        Ok(Exported { objects, left_out })
    }

    /// Removes the objects that cannot be read; nobody else may have the database open.
    ///
    /// # Errors
    /// [`DataError::Open`].
    pub async fn remove_unreadable(&self) -> Result<Vec<Unreadable>, DataError> {
        Ok(self.doctor().remove_unreadable().await?)
    }
}
