//! Store in a PostgreSQL database, to which several control services may write. Each caches current states within a size limit.
//!
//! `open` opens the database, `meta` reads the row with its progress, `session` is one connection with its limits, `pool` the
//! connections of readers, `outage` logs outages. `writer` is the task of this process that writes and follows the log,
//! `connection` reconnects it, `commit` is its SQL, `follow` applies commits of other processes, `high_water` records the head
//! for the next start, `epoch` begins a new epoch, `unreadable_retry` retries values that could not be opened. `reader`,
//! `history` and `lookup` are the SQL of readers, `latest_revision` queries the head, `wake` receives notifications of commits,
//! `compaction` deletes old history.

mod archive;
mod archive_retention;
mod clock;
mod commit;
mod compaction;
mod connection;
mod epoch;
mod failure;
mod fatal;
mod follow;
mod high_water;
mod history;
mod latest_revision;
mod list;
mod loader;
mod lookup;
mod meta;
mod open;
mod outage;
mod pending_group;
mod pool;
mod prior_states;
mod reader;
mod row;
mod session;
mod settings;
mod source;
mod source_archive;
mod switch;
mod target;
mod target_archive;
mod unreadable_retry;
mod wake;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::tasks::TaskSet;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

pub use self::open::PostgresError;
pub use self::settings::{InvalidUrl, PostgresSettings};
pub use self::source::PostgresSource;
pub use self::switch::PostgresSwitch;
pub use self::target::PostgresTarget;

use self::commit::CommitStatement;
use self::compaction::{Compactor, PendingSweeps};
use self::high_water::{HeadPosition, HighWaterRecord};
use self::latest_revision::HeadQuery;
use self::pool::ConnectionPool;
use self::reader::Reader;
use self::writer::Writer;
use crate::archive::{PastQuery, PastStates};
use crate::cache::{Budget, Cache};
use crate::copy::{ArchiveCursor, CopySource};
use crate::current_state::{CurrentState, ObjectLookup};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::index::Indexer;
use crate::key::{Key, Resource};
use crate::latest_revision::LatestRevision;
use crate::metrics::Metrics;
use crate::publish::{HistoryBytes, Publisher};
use crate::record::Record;
use crate::reseal::ResealProgress;
use crate::scope::{ResourceFilter, Scope};
use crate::seal::Seal;
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::store::{ListAt, Page, StaleSeals, Store};
use crate::submit::{CommitRequest, Submitter};
use crate::subscription::selection::Selection;
use crate::subscription::{Subscription, WatchError};
use crate::txn::{CommittedTxn, Txn, TxnError};
use crate::unreadable::{StoreCondition, Unreadable};
use crate::writer_guard::WriterGuard;

/// [`Store`] in a PostgreSQL database.
pub struct PostgresStore {
    identity: Identity,
    reader: Arc<Reader>,
    submitter: Submitter<CommitRequest>,
    compactor: Arc<Compactor>,
    closing: CancellationToken,
    closed: CancellationToken,
}

impl PostgresStore {
    /// Opens the database, creating its tables if they are missing, and starts the writer and the compaction in `tasks`.
    /// Ignores the `settings` of files.
    ///
    /// When `tasks` is cancelled, the store finishes the queued writes and closes.
    ///
    /// # Errors
    /// [`PostgresError`].
    pub async fn open(
        postgres: PostgresSettings,
        settings: Settings,
        indexer: Arc<dyn Indexer>,
        seal: Arc<Seal>,
        metrics: Metrics,
        tasks: &TaskSet,
    ) -> Result<Self, PostgresError> {
        let mark = high_water::path(&settings);
        let recorded = match mark.clone() {
            Some(path) => HighWaterRecord::read(path.clone())
                .await
                .map_err(|error| PostgresError::File { path, error })?,
            None => HighWaterRecord::Missing,
        };
        let opened = open::open(&postgres, &recorded).await?;
        let meta = opened.meta;
        let (head, heads) = watch::channel((meta.revision, meta.head_commit_id));
        let hub = Hub::new(meta.revision, meta.compacted, &settings, metrics.subscriptions.clone());
        let cache = Cache::new(Budget::new(&settings, &metrics), meta.revision, true);
        let (hub, cache) = (Arc::new(hub), Arc::new(cache));
        opened.resources.iter().for_each(|resource| drop(cache.slot(resource)));
        let (history, wake) = (Arc::new(HistoryBytes::default()), Arc::new(Notify::new()));
        let pool = Arc::new(ConnectionPool::new(&postgres));
        let head_query = HeadQuery {
            connections: pool.clone(),
            hub: hub.clone(),
            identity: meta.identity.clone(),
            wake: wake.clone(),
        };
        let (latest_revision, query_task) =
            LatestRevision::new(head_query, hub.clone(), postgres.statement_timeout);
        let reader = Arc::new(Reader {
            pool,
            identity: meta.identity.clone(),
            wake: wake.clone(),
            indexer,
            seal: seal.clone(),
            cache: cache.clone(),
            hub: hub.clone(),
            metrics: metrics.clone(),
            latest_revision,
            // One connection remains for other reads.
            history_permits: Semaphore::new((postgres.read_connections.saturating_sub(1) as usize).max(1)),
        });
        let compactor = Arc::new(Compactor {
            reader: reader.clone(),
            history: history.clone(),
            retention: settings.history_retention,
            max_bytes: settings.history_max_bytes,
            mark_retention: settings.mark_retention.max(settings.archive.longest()),
            archive: settings.archive.clone(),
            archive_max_bytes: settings.archive_max_bytes,
            interval: settings.compaction_interval,
            delay: postgres.sweep_delay,
            pending_sweeps: PendingSweeps::default(),
        });
        let (requests, queue) = mpsc::channel(settings.write_queue.max(1));
        let group_operations = settings.group_operations.max(1);
        let closing = tasks.token().child_token();
        let writer = Writer {
            settings: postgres.clone(),
            connection: Some(opened.writer),
            statement: CommitStatement::new(opened.supports_notify),
            requests: queue,
            wake: wake.clone(),
            publisher: Publisher { cache, hub: hub.clone(), history, metrics },
            reader: reader.clone(),
            identity: meta.identity.clone(),
            revision: meta.revision,
            head_commit_id: meta.head_commit_id,
            tail: opened.tail,
            pessimistic_rounds: 0,
            retry_unreadable_at: None,
            group_operations,
            head,
            closing: closing.clone(),
        };
        let store = Self {
            identity: meta.identity,
            reader,
            submitter: Submitter { requests, seal, group_operations, concurrent: false },
            compactor,
            closing: closing.clone(),
            closed: CancellationToken::new(),
        };
        store.start(writer, mark.map(|path| (path, heads)), tasks);
        tasks.spawn("store-latest", async move {
            closing.run_until_cancelled(query_task).await;
        });
        // Transaction poolers deliver no notifications.
        if opened.supports_notify && !postgres.transaction_pooler {
            let listening = wake::listen(postgres, hub, wake);
            let closing = store.closing.clone();
            tasks.spawn("store-listener", async move {
                closing.run_until_cancelled(listening).await;
            });
        }
        Ok(store)
    }

    fn start(&self, writer: Writer, mark: Option<(PathBuf, watch::Receiver<HeadPosition>)>, tasks: &TaskSet) {
        let guard =
            WriterGuard { hub: self.reader.hub.clone(), closed: self.closed.clone(), tasks: tasks.clone() };
        let identity = self.identity.clone();
        let recorder = async move {
            if let Some((path, heads)) = mark {
                high_water::record_heads(path, identity, heads).await;
            }
        };
        tasks.spawn("store-writer", async move {
            let write = async {
                let ended = writer.run().await;
                // The process then ends, even if the data folder does not respond.
                if let Err(error) = &ended {
                    guard.tasks.fail("store-writer", &error.to_string());
                }
            };
            tokio::join!(write, recorder);
            drop(guard);
        });
        tasks.spawn("store-compaction", self.compactor.clone().run(self.closing.clone()));
    }

    fn subscribe(&self, selection: Selection, from: i64) -> Result<Subscription, WatchError> {
        Subscription::start(&self.reader.hub, selection, from, self.reader.clone())
    }
}

impl Store for PostgresStore {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn commit(&self, txns: Vec<Txn>) -> BoxFuture<'_, Vec<Result<CommittedTxn, TxnError>>> {
        Box::pin(self.submitter.write(txns, &*self.reader))
    }

    fn snapshot<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        Box::pin(async move { self.reader.snapshot(&self.reader.cache.slot(resource)).await })
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

    fn damaged_keys<'a>(&'a self, _: &'a Resource) -> BoxFuture<'a, Result<Vec<Unreadable>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn pin(&self, resource: &Resource) {
        self.reader.cache.pin(resource);
    }

    fn try_snapshot(&self, _: &Resource) -> Option<Snapshot> {
        None
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
        Box::pin(self.reader.latest_revision.revision())
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
        let source = self.copy_source();
        Box::pin(async move { self.compactor.reseal(&*source, until, after).await })
    }

    fn copy_source(&self) -> Arc<dyn CopySource> {
        Arc::new(PostgresSource::from_store(self.reader.pool.clone(), self.reader.seal.clone()))
    }

    fn condition(&self) -> StoreCondition {
        StoreCondition { unreadable: self.reader.cache.unreadable(), ..StoreCondition::default() }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closing.cancel();
        Box::pin(self.closed.cancelled())
    }
}

impl Drop for PostgresStore {
    /// Starts to close the store when it is dropped; its tasks then end.
    fn drop(&mut self) {
        self.closing.cancel();
    }
}
