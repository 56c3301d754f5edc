//! Test harness: opens the stores under test and creates small objects. Contains no tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{
    CommittedTxn, Event, Indexer, Key, MetadataIndexer, Metrics, OpenError, Record, Resource, Settings,
    SqliteStore, Store, Subscription, Txn, TxnError, Value,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

pub use portico_tests::WAIT_LIMIT;

/// Implementation of `Store` with a location for one database.
pub trait Backend: Send + Sync {
    /// Opens the database, the first time or again.
    fn open_with<'a>(&'a self, tune: &'a (dyn Fn(&mut Settings) + Sync)) -> BoxFuture<'a, Arc<dyn Store>>;

    /// Returns the number of writes in a new database.
    fn initial_writes(&self) -> i64 {
        0
    }

    /// True if the event of a deletion has the state stored before it, and not that of the deletion.
    fn deletion_events_have_stored_state(&self) -> bool {
        false
    }

    /// Opens the database with default settings.
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        self.open_with(&|_| ())
    }
}

tokio::task_local! {
    /// Cache size of the stores in the running test.
    static CACHE_MAX_BYTES: u64;
}

/// Runs a test whose stores cache no objects.
pub async fn without_cache<T>(test: impl Future<Output = T>) -> T {
    with_cache(1, test).await
}

/// Runs a test whose stores cache everything.
pub async fn with_full_cache<T>(test: impl Future<Output = T>) -> T {
    test.await
}

/// Runs a test whose stores have this cache size.
pub async fn with_cache<T>(max_bytes: u64, test: impl Future<Output = T>) -> T {
    CACHE_MAX_BYTES.scope(max_bytes, test).await
}

/// Returns the settings of stores in the running test.
pub fn settings_at(path: impl Into<PathBuf>) -> Settings {
    let mut settings = Settings::new(path);
    settings.cache_max_bytes = CACHE_MAX_BYTES.try_with(|bytes| *bytes).ok();
    // A resource that did not fit is tried again with the next read.
    settings.cache_idle_time = Duration::ZERO;
    settings
}

/// Creates two tests of each function: with all objects cached, and with none.
#[macro_export]
macro_rules! cached_and_uncached {
    ($($name:ident),* $(,)?) => {
        mod cached {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    $crate::harness::with_full_cache(super::$name()).await;
                }
            )*
        }
        mod uncached {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    $crate::harness::without_cache(super::$name()).await;
                }
            )*
        }
    };
}

tokio::task_local! {
    /// Number of writes in a new database of the running test.
    pub static INITIAL_WRITES: i64;
}

/// Converts a revision to that of a database without initial writes.
fn without_initial_writes(revision: i64) -> i64 {
    revision - INITIAL_WRITES.try_with(|count| *count).unwrap_or(0)
}

/// Converts a revision of a database without initial writes to the actual one.
pub fn rev(counted: i64) -> i64 {
    counted + INITIAL_WRITES.try_with(|count| *count).unwrap_or(0)
}

/// Indexer that also reads `spec.nodeName`.
pub struct WithNodeName;

impl Indexer for WithNodeName {
    fn index(
        &self,
        resource: &portico_machinery::GroupResource,
        json: &[u8],
    ) -> Result<portico_store::Indexed, portico_store::IndexError> {
        let mut indexed = MetadataIndexer.index(resource, json)?;
        let object: serde_json::Value = serde_json::from_slice(json).unwrap();
        let node = object["spec"]["nodeName"].as_str();
        indexed.fields = node.map(|node| ("spec.nodeName".into(), node.into())).into_iter().collect();
        Ok(indexed)
    }
}

/// SQLite in a temporary folder.
pub struct Sqlite {
    folder: tempfile::TempDir,
}

impl Sqlite {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("data/portico.db")
    }

    pub async fn try_open(&self, tune: &(dyn Fn(&mut Settings) + Sync)) -> Result<SqliteStore, OpenError> {
        open_sqlite(self.path(), tune).await
    }
}

pub async fn open_sqlite(
    path: PathBuf,
    tune: &(dyn Fn(&mut Settings) + Sync),
) -> Result<SqliteStore, OpenError> {
    let mut settings = settings_at(path);
    tune(&mut settings);
    let metrics = Metrics::new(&Registry::new());
    SqliteStore::open(settings, Arc::new(WithNodeName), metrics, &TaskSet::new()).await
}

/// Copies a database, which may be served, into a new file.
pub async fn copy_database(database: &Path, file: &Path) {
    let options = SqliteConnectOptions::new().filename(database).read_only(true);
    let mut connection = options.connect().await.unwrap();
    let copied = sqlx::query("VACUUM INTO ?").bind(file.to_str().unwrap());
    copied.execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

impl Backend for Sqlite {
    fn open_with<'a>(&'a self, tune: &'a (dyn Fn(&mut Settings) + Sync)) -> BoxFuture<'a, Arc<dyn Store>> {
        Box::pin(async { Arc::new(self.try_open(tune).await.unwrap()) as Arc<dyn Store> })
    }
}

pub fn config_maps() -> Resource {
    Resource::new("", "configmaps")
}

pub fn leases() -> Resource {
    Resource::new("coordination.k8s.io", "leases")
}

pub fn key(path: &str) -> Key {
    let (namespace, name) = path.split_once('/').unwrap_or(("", path));
    Key::new(&config_maps(), namespace, name)
}

/// Returns an object whose content contains `text`.
pub fn value(key: &Key, text: &str) -> Value {
    value_with_owners(key, text, &[])
}

pub fn value_with_owners(key: &Key, text: &str, owners: &[&str]) -> Value {
    let owners: Vec<String> = owners.iter().map(|owner| format!(r#"{{"uid":"{owner}"}}"#)).collect();
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let json = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":{},"namespace":{},"uid":{},"labels":{{"text":"{text}"}},"ownerReferences":[{}]}},"data":{{"text":"{text}"}}}}"#,
        quoted(key.name()),
        quoted(key.namespace()),
        quoted(&format!("uid-{}", key.name())),
        owners.join(",")
    );
    let indexed = MetadataIndexer.index(key.resource(), json.as_bytes()).unwrap();
    Value::new(json.into_bytes(), indexed)
}

pub fn text(record: &Record) -> String {
    record.value.label("text").unwrap().to_owned()
}

/// Returns `path@revision=text` for each record.
pub fn lines<'a>(records: impl IntoIterator<Item = &'a Arc<Record>>) -> Vec<String> {
    let line = |record: &Arc<Record>| {
        format!("{}@{}={}", record.key.path(), without_initial_writes(record.revision), text(record))
    };
    records.into_iter().map(line).collect()
}

pub async fn commit(store: &dyn Store, txn: Txn) -> Result<CommittedTxn, TxnError> {
    store.commit(vec![txn]).await.pop().unwrap()
}

/// Creates or replaces an object without a precondition. Returns the revision.
pub async fn put(store: &dyn Store, key: &Key, text: &str) -> i64 {
    let change = portico_store::Change::Put(value(key, text));
    commit(store, Txn::single(key.clone(), portico_store::Precondition::Any, change)).await.unwrap().revision
}

/// Deletes an existing object. Returns the revision.
pub async fn delete(store: &dyn Store, key: &Key) -> i64 {
    let change = portico_store::Change::Delete(value(key, "gone"));
    commit(store, Txn::single(key.clone(), portico_store::Precondition::Exists, change))
        .await
        .unwrap()
        .revision
}

/// Runs a test. Panics after a time that no passing test needs.
pub async fn bounded(test: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(300), test).await.expect("the test timed out");
}

/// Returns the next events. Panics after a time that no passing test needs.
pub async fn take(subscription: &mut Subscription, count: usize) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    while events.len() < count {
        let next = tokio::time::timeout(WAIT_LIMIT, subscription.next()).await;
        events.push(next.expect("an event is missing").unwrap());
    }
    events
}

/// Returns `Type path@revision` for each event.
pub fn event_lines(events: &[Arc<Event>]) -> Vec<String> {
    let line = |event: &Arc<Event>| {
        format!(
            "{:?} {}@{}",
            event.event_type,
            event.record.key.path(),
            without_initial_writes(event.revision())
        )
    };
    events.iter().map(line).collect()
}

/// Checks that a request that queries the revision of the database once queries it again after a rejected write.
pub async fn check_revision_query_after_conflict(other: &dyn Store, store: &dyn Store) {
    let (key, resource) = (key("a/conflict"), config_maps());
    for round in 0..20 {
        let before = put(other, &key, "before").await;
        let request = async {
            let read =
                async || store.snapshot(&resource).await.unwrap().get(&key).map(|found| found.revision);
            assert_eq!(read().await, Some(before));
            let now = match round % 2 {
                0 => Some(put(other, &key, "after").await),
                _ => {
                    delete(other, &key).await;
                    None
                }
            };
            let update = Txn::update(key.clone(), before, value(&key, "late"));
            match commit(store, update).await {
                Err(TxnError::Conflict { .. } | TxnError::NotFound { .. }) => assert_eq!(read().await, now),
                done => panic!("expected a conflict: {done:?}"),
            }
        };
        portico_store::with_single_revision_check(request).await;
    }
}
