//! What portable backups and moves need besides the store: where databases are, keys, times, and a store of our own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{
    CopySource, Known, MetadataIndexer, Metrics, OpenError, Seal, Settings, SqliteStore, Store, StoreSwitch,
};

use super::{DataError, database};

/// How long events are kept that are restored into etcd (the default of `--event-ttl`).
const EVENT_TTL: Duration = Duration::from_secs(3600);
/// Nothing is forgotten while a store is copied.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// What opens sealed values; without a file of `--encryption-provider-config` nothing does.
///
/// # Errors
/// [`DataError::Encryption`].
pub fn opener(encryption_config: Option<&Path>) -> Result<Arc<Seal>, DataError> {
    Ok(encryption_config.map(crate::encryption::opener).transpose()?.unwrap_or_else(Seal::none))
}

/// What an etcd is copied with: where objects stand in it, in which bytes, and what seals and opens them there, by a file of
/// `--encryption-provider-config`. Events are kept as long as by default.
///
/// # Errors
/// [`DataError::Encryption`], [`DataError::Kinds`].
pub async fn known(encryption_config: Option<&Path>) -> Result<Known, DataError> {
    let seal = match encryption_config {
        Some(path) => crate::encryption::sealer(path, &TaskSet::new()).await?,
        None => Seal::none(),
    };
    let layout = Arc::new(portico_resources::table().etcd_layout(EVENT_TTL)?);
    Ok(Known { indexer: Arc::new(MetadataIndexer), layout, seal })
}

/// The database that is meant by a data folder, or by the database in it.
#[must_use]
pub fn database_in(path: &Path) -> PathBuf {
    if path.is_dir() || path.extension().is_none_or(|extension| extension != "db") {
        return database(path);
    }
    path.to_owned()
}

/// The time, in Unix seconds.
#[must_use]
pub fn now() -> i64 {
    Timestamp::now().as_second()
}

/// Unix seconds of a time as RFC 3339 has it (`2026-01-31T12:00:00Z`).
///
/// # Errors
/// What is wrong with it.
pub fn unix_seconds(text: &str) -> Result<i64, String> {
    text.parse().map(Timestamp::as_second).map_err(|error: jiff::Error| error.to_string())
}

/// A time in Unix seconds for people.
#[must_use]
pub fn time_text(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

/// A store in a SQLite file that nobody else has open.
pub struct OwnedStore {
    store: Arc<SqliteStore>,
}

impl OwnedStore {
    /// Opens a database that is there.
    ///
    /// # Errors
    /// [`DataError::Missing`], [`DataError::Open`]: [`OpenError::InUse`] when it is served.
    pub async fn open(database: &Path, seal: Arc<Seal>) -> Result<Self, DataError> {
        if !database.exists() {
            return Err(DataError::Missing(database.to_owned()));
        }
        let settings = Settings { compaction_interval: NEVER, ..Settings::new(database) };
        let (metrics, tasks) = (Metrics::new(&Registry::new()), TaskSet::new());
        let store =
            SqliteStore::open_sealed(settings, Arc::new(MetadataIndexer), seal, metrics, &tasks).await;
        Ok(Self { store: Arc::new(store.map_err(|error: OpenError| DataError::Open(error))?) })
    }

    /// What is stored.
    #[must_use]
    pub fn source(&self) -> Arc<dyn CopySource> {
        self.store.source()
    }

    /// What stops its writes.
    #[must_use]
    pub fn switch(&self) -> StoreSwitch {
        StoreSwitch(Arc::clone(&self.store) as Arc<dyn Store>)
    }

    /// Lets go of it, in order.
    pub async fn close(self) {
        self.store.close().await;
    }
}
