//! Store in a SQLite file: one writer, several readers, and a cache of current states within a size limit.
//!
//! `open` opens the file, `writer` is the writing task, `persistence` its SQL, `reader`, `history` and `lookup` the SQL of
//! reads, `compaction` deletes old history.

mod allocation;
mod archive;
mod archive_retention;
mod archive_writes;
mod backup;
mod compaction;
mod comparison;
mod decode;
mod doctor;
mod epoch;
mod failure;
mod files;
mod history;
mod loader;
mod lock;
mod lookup;
mod maintenance;
mod mark;
mod open;
mod open_error;
mod persistence;
mod prior_states;
mod reader;
mod row;
mod source;
mod source_archive;
mod space;
mod stale_seals;
mod statement;
mod target;
mod target_archive;
mod wal;
mod writer;

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use portico_kit::tasks::TaskSet;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

pub use self::backup::{BackupError, RestoredDatabase, restore};
pub use self::doctor::{Doctor, Examination, ExportSummary, Finding};
pub use self::epoch::DEFAULT_REVISION_BUMP;
pub use self::open_error::OpenError;
pub use self::source::SqliteSource;
pub use self::target::SqliteTarget;

use self::compaction::Compactor;
use self::open::OpenDatabase;
use self::reader::Reader;
use self::space::Space;
use self::writer::{Request, Writer};
use crate::archive::{PastQuery, PastStates};
use crate::cache::{Budget, Cache};
use crate::copy::{ArchiveCursor, CopySource};
use crate::current_state::{CurrentState, ObjectLookup};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::index::Indexer;
use crate::key::{Key, Resource};
use crate::loader::Loader;
use crate::metrics::Metrics;
use crate::publish::{HistoryBytes, Publisher};
use crate::record::Record;
use crate::reseal::ResealProgress;
use crate::scope::{ResourceFilter, Scope};
use crate::seal::Seal;
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::store::{ListAt, Page, StaleSeals, Store};
use crate::submit::Submitter;
use crate::subscription::selection::Selection;
use crate::subscription::{Subscription, WatchError};
use crate::txn::{CommittedTxn, Txn, TxnError};
use crate::unreadable::{MissingStates, StoreCondition, Unreadable};
use crate::writer_guard::WriterGuard;

/// [`Store`] in a SQLite file.
pub struct SqliteStore {
    identity: Identity,
    reader: Arc<Reader>,
    submitter: Submitter<Request>,
    compactor: Arc<Compactor>,
    space: Arc<Space>,
    path: PathBuf,
    unreadable_resources: Vec<Resource>,
    closing: CancellationToken,
    closed: CancellationToken,
}

impl SqliteStore {
    /// Opens or creates the database, and starts the writer and the compaction in `tasks`.
    ///
    /// When `tasks` is cancelled, the store finishes the queued writes and closes: pass a set that is cancelled after
    /// everything that writes.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(
        settings: Settings,
        indexer: Arc<dyn Indexer>,
        metrics: Metrics,
        tasks: &TaskSet,
    ) -> Result<Self, OpenError> {
        Self::open_sealed(settings, indexer, Seal::none(), metrics, tasks).await
    }

    /// Opens like [`SqliteStore::open`], with values sealed in the database.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open_sealed(
        settings: Settings,
        indexer: Arc<dyn Indexer>,
        seal: Arc<Seal>,
        metrics: Metrics,
        tasks: &TaskSet,
    ) -> Result<Self, OpenError> {
        // Deleted content is overwritten if values are sealed, so that readers of the file do not find it.
        let settings =
            Settings { overwrite_deleted: settings.overwrite_deleted || seal.is_active(), ..settings };
        let settings = Settings { path: files::resolve(&settings.path), ..settings };
        let (lock, OpenDatabase { writer: connection, readers, contents: opened }) =
            open::open(&settings).await?;
        let mut unreadable_resources = Vec::new();
        for (resource, objects) in opened.unreadable_resources {
            metrics.unreadable(&resource, objects);
            unreadable_resources.push(resource);
        }
        let hub =
            Arc::new(Hub::new(opened.revision, opened.compacted, &settings, metrics.subscriptions.clone()));
        let history = Arc::new(HistoryBytes::default());
        let cache = Cache::new(Budget::new(&settings, &metrics), opened.revision, false);
        opened.resources.into_iter().for_each(|(id, resource)| cache.insert_stored(id, resource));
        opened.reserved_ids.into_iter().for_each(|id| cache.reserve_id(id));
        let cache = Arc::new(cache);
        let (requests, queue) = mpsc::channel(settings.write_queue.max(1));
        let space =
            Space::new(&settings.path, &lock.database, settings.reserve_bytes, settings.max_file_bytes);
        let space = Arc::new(space);
        let reader = Arc::new(Reader {
            pool: readers,
            indexer,
            seal: seal.clone(),
            cache: cache.clone(),
            hub: hub.clone(),
            metrics: metrics.clone(),
            history_permits: Semaphore::new(concurrent_resumes(settings.read_connections)),
            scan_permits: Semaphore::new(1),
        });
        let compactor = Arc::new(Compactor {
            reader: reader.clone(),
            requests: requests.clone(),
            history: history.clone(),
            metrics: metrics.clone(),
            retention: settings.history_retention,
            max_bytes: settings.history_max_bytes,
            mark_retention: settings.mark_retention.max(settings.archive.longest()),
            archive: settings.archive.clone(),
            archive_max_bytes: settings.archive_max_bytes,
            interval: settings.compaction_interval,
            path: settings.path.clone(),
            space: space.clone(),
            shrink_pending: AtomicBool::new(false),
            missing_states: Mutex::new(MissingStates::Unknown),
        });
        let closing = tasks.token().child_token();
        let writer = Writer {
            connection: ManuallyDrop::new(connection),
            requests: queue,
            publisher: Publisher { cache, hub, history, metrics },
            revision: opened.revision,
            compacted: opened.compacted,
            reader: reader.clone(),
            path: settings.path.clone(),
            identity: opened.identity.clone(),
            marked_revision: opened.revision,
            marked_second: None,
            archive: settings.archive.clone(),
            space: space.clone(),
            group_operations: settings.group_operations.max(1),
            closing: closing.clone(),
            lock,
        };
        let store = Self {
            identity: opened.identity,
            reader,
            submitter: Submitter {
                requests,
                seal,
                group_operations: settings.group_operations.max(1),
                concurrent: false,
            },
            compactor,
            space,
            path: settings.path,
            unreadable_resources,
            closing,
            closed: CancellationToken::new(),
        };
        store.start(writer, tasks);
        Ok(store)
    }

    fn start(&self, writer: Writer, tasks: &TaskSet) {
        let guard =
            WriterGuard { hub: self.reader.hub.clone(), closed: self.closed.clone(), tasks: tasks.clone() };
        tasks.spawn("store-writer", async move {
            let ended = writer.run().await;
            if let Err(error) = ended {
                guard.tasks.fail("store-writer", &error.to_string());
            }
            drop(guard);
        });
        tasks.spawn("store-compaction", self.compactor.clone().run(self.closing.clone()));
    }

    fn subscribe(&self, selection: Selection, from: i64) -> Result<Subscription, WatchError> {
        Subscription::start(&self.reader.hub, selection, from, self.reader.clone())
    }

    /// Returns the source of copies, which returns values as stored in the database.
    #[must_use]
    pub fn source(&self) -> Arc<dyn CopySource> {
        let (pool, seal) = (self.reader.pool.clone(), self.reader.seal.clone());
        Arc::new(SqliteSource::from_store(pool, seal, self.path.clone()))
    }
}

/// Returns the number of watches that read history concurrently. One connection remains for other reads if there are several.
fn concurrent_resumes(read_connections: u32) -> usize {
    usize::try_from(read_connections.saturating_sub(1)).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS)
}

impl Store for SqliteStore {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn commit(&self, txns: Vec<Txn>) -> BoxFuture<'_, Vec<Result<CommittedTxn, TxnError>>> {
        Box::pin(self.submitter.write(txns, &*self.reader))
    }

    fn snapshot<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        Box::pin(async move { self.reader.full_snapshot(&self.reader.cache.slot(resource)).await })
    }

    fn current_state<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<CurrentState, StoreError>> {
        Box::pin(async move { self.reader.current_state(&self.reader.cache.slot(resource)).await })
    }

    fn find<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<ObjectLookup, StoreError>> {
        Box::pin(self.reader.find(key))
    }

    fn damaged_keys<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Vec<Unreadable>, StoreError>> {
        Box::pin(self.reader.damaged_keys(resource))
    }

    fn pin(&self, resource: &Resource) {
        self.reader.cache.pin(resource);
    }

    fn try_snapshot(&self, resource: &Resource) -> Option<Snapshot> {
        self.cached_snapshot(resource)
    }

    fn cached_snapshot(&self, resource: &Resource) -> Option<Snapshot> {
        let current = self.revision();
        self.reader.cache.slot(resource).snapshot(current)
    }

    fn list_at(&self, query: ListAt) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(self.reader.list_at(query))
    }

    fn get_at<'a>(
        &'a self,
        key: &'a Key,
        revision: i64,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, StoreError>> {
        Box::pin(self.reader.get_at(key, revision))
    }

    fn list_past(&self, query: ListAt) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(self.reader.list_past(query))
    }

    fn past_states(&self, query: PastQuery) -> BoxFuture<'_, Result<PastStates, StoreError>> {
        Box::pin(self.reader.past_states(query))
    }

    fn watch(&self, scope: Scope, from: i64) -> Result<Subscription, WatchError> {
        self.subscribe(Selection::Scope(scope), from)
    }

    fn follow(&self, filter: ResourceFilter, from: i64) -> Result<Subscription, WatchError> {
        self.subscribe(Selection::Filter(filter), from)
    }

    fn revision(&self) -> i64 {
        self.reader.hub.revision()
    }

    fn revisions(&self) -> watch::Receiver<i64> {
        self.reader.hub.revisions()
    }

    fn latest_revision(&self) -> BoxFuture<'_, Result<i64, StoreError>> {
        // No other process writes to the file, so the visible revision is the latest one.
        let closed = self.closing.is_cancelled();
        let revision = self.revision();
        Box::pin(async move { if closed { Err(StoreError::Closed) } else { Ok(revision) } })
    }

    fn wait_for_revision(&self, revision: i64) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.reader.hub.wait_until_visible(revision, self.closed.clone()))
    }

    fn revision_at(&self, time: i64) -> BoxFuture<'_, Result<i64, StoreError>> {
        Box::pin(self.reader.revision_at(time))
    }

    fn compacted(&self) -> i64 {
        self.reader.hub.compacted()
    }

    fn compact(&self, revision: i64) -> BoxFuture<'_, Result<i64, StoreError>> {
        Box::pin(self.compactor.compact(revision))
    }

    fn dependents<'a>(&'a self, owner_uid: &'a str) -> BoxFuture<'a, Result<Vec<Key>, StoreError>> {
        Box::pin(self.reader.dependents(owner_uid))
    }

    fn owner_uids(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(self.reader.owner_uids())
    }

    fn terminating_keys(&self) -> BoxFuture<'_, Result<Vec<Key>, StoreError>> {
        Box::pin(self.reader.terminating_keys())
    }

    fn object_counts(&self) -> BoxFuture<'_, Result<Vec<(Resource, u64)>, StoreError>> {
        Box::pin(self.reader.object_counts())
    }

    fn average_sizes(&self) -> BoxFuture<'_, Result<Vec<(Resource, u64)>, StoreError>> {
        Box::pin(self.reader.average_sizes())
    }

    fn resources_in<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, Result<Vec<Resource>, StoreError>> {
        Box::pin(self.reader.resources_in(namespace))
    }

    fn has_seal_rules(&self) -> bool {
        self.reader.has_seal_rules()
    }

    fn sealed_resources(&self) -> Vec<Resource> {
        self.reader.sealed_resources()
    }

    fn has_stale_seal<'a>(&'a self, key: &'a Key, revision: i64) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.reader.has_stale_seal(key, revision))
    }

    fn stale_seals<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<StaleSeals, StoreError>> {
        Box::pin(self.reader.stale_seals(resource))
    }

    fn reseal_past_states(
        &self,
        until: i64,
        after: ArchiveCursor,
    ) -> BoxFuture<'_, Result<ResealProgress, StoreError>> {
        let source = self.source();
        Box::pin(async move { self.compactor.reseal(&*source, until, after).await })
    }

    fn copy_source(&self) -> Arc<dyn CopySource> {
        self.source()
    }

    fn condition(&self) -> StoreCondition {
        StoreCondition {
            full: self.space.delete_only_reason(),
            unreadable: self.reader.cache.unreadable(),
            unreadable_resources: self.unreadable_resources.iter().map(ToString::to_string).collect(),
            missing_states: self.compactor.missing_states.lock().clone(),
        }
    }

    fn incomplete_reason(&self, resource: &Resource) -> Option<String> {
        if let Some(name) = self.unreadable_resources.iter().find(|name| row::may_be_resource(name, resource))
        {
            return Some(format!("the name of the stored resource {name} cannot be read"));
        }
        let is_incomplete = self.compactor.missing_states.lock().may_lack_objects_of(resource);
        is_incomplete.then(|| "stored states are missing from the database or from its index".to_owned())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closing.cancel();
        Box::pin(self.closed.cancelled())
    }
}

impl Drop for SqliteStore {
    /// Starts to close the store when it is dropped; its tasks then end.
    fn drop(&mut self) {
        self.closing.cancel();
    }
}
