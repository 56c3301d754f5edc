//! Tools for portable backups and migrations: paths of databases, encryption keys, times, and exclusive access to a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{
    CopySource, MetadataIndexer, Metrics, ObjectCodec, OpenError, Seal, Settings, SqliteStore, Store,
    StoreSwitch,
};

use super::{DataError, database_file};

/// Lifetime of events that are restored into etcd (the default of `--event-ttl`).
const EVENT_TTL: Duration = Duration::from_secs(3600);
/// Compaction interval that disables compaction while a store is copied.
const NO_COMPACTION: Duration = Duration::from_secs(365 * 24 * 3600);

/// Loads the seal that opens encrypted values; a seal without keys if there is no file of `--encryption-provider-config`.
///
/// # Errors
/// [`DataError::Encryption`].
pub fn load_seal(encryption_config: Option<&Path>) -> Result<Arc<Seal>, DataError> {
    Ok(encryption_config.map(crate::encryption::load_seal).transpose()?.unwrap_or_else(Seal::none))
}

/// Returns the format of data in an etcd: keys, encoding, and the seal defined by a file of `--encryption-provider-config`.
/// Events expire after the default lifetime.
///
/// # Errors
/// [`DataError::Encryption`], [`DataError::Kinds`].
pub async fn etcd_format(encryption_config: Option<&Path>) -> Result<ObjectCodec, DataError> {
    let seal = match encryption_config {
        Some(path) => crate::encryption::load_polled_seal(path, &TaskSet::new()).await?,
        None => Seal::none(),
    };
    let layout = Arc::new(portico_resources::table().etcd_layout(EVENT_TTL)?);
    Ok(ObjectCodec { indexer: Arc::new(MetadataIndexer), layout, seal })
}

/// Returns the path of a database, given the path of its data folder or of the database itself.
#[must_use]
pub fn resolve_database(path: &Path) -> PathBuf {
    if path.is_dir() || path.extension().is_none_or(|extension| extension != "db") {
        return database_file(path);
    }
    path.to_owned()
}

/// Returns the current time in Unix seconds.
#[must_use]
pub fn unix_now() -> i64 {
    Timestamp::now().as_second()
}

/// Parses a time in the format of RFC 3339 (`2026-01-31T12:00:00Z`); returns Unix seconds.
///
/// # Errors
/// The text is not a valid time.
pub fn unix_seconds(text: &str) -> Result<i64, String> {
    text.parse().map(Timestamp::as_second).map_err(|error: jiff::Error| error.to_string())
}

/// Formats a time in Unix seconds for users.
#[must_use]
pub fn format_time(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

/// Store in a SQLite file that no other process has open.
pub struct ExclusiveStore {
    store: Arc<SqliteStore>,
}

impl ExclusiveStore {
    /// Opens an existing database.
    ///
    /// # Errors
    /// [`DataError::Missing`], [`DataError::Open`]: [`OpenError::InUse`] if a server uses the database.
    pub async fn open(database: &Path, seal: Arc<Seal>) -> Result<Self, DataError> {
        if !database.exists() {
            return Err(DataError::Missing(database.to_owned()));
        }
        let settings = Settings { compaction_interval: NO_COMPACTION, ..Settings::new(database) };
        let (metrics, tasks) = (Metrics::new(&Registry::new()), TaskSet::new());
        let store =
            SqliteStore::open_sealed(settings, Arc::new(MetadataIndexer), seal, metrics, &tasks).await;
        Ok(Self { store: Arc::new(store.map_err(|error: OpenError| DataError::Open(error))?) })
    }

    /// Returns the source of copies.
    #[must_use]
    pub fn source(&self) -> Arc<dyn CopySource> {
        self.store.source()
    }

    /// Returns the switch that stops writes.
    #[must_use]
    pub fn switch(&self) -> StoreSwitch {
        StoreSwitch(Arc::clone(&self.store) as Arc<dyn Store>)
    }

    /// Closes the store.
    pub async fn close(self) {
        self.store.close().await;
    }
}
