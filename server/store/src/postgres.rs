//! Store in a PostgreSQL database, to which several control services may write. Each caches current states within a size limit.
//!
//! `open` opens the database, `meta` reads the row with its progress, `session` is one connection with its limits, `pool` the
//! connections of readers, `outage` logs outages. `writer` is the task of this process that writes and follows the log,
//! `connection` reconnects it, `commit` is its SQL, `follow` applies commits of other processes, `high_water` records the head
//! for the next start, `epoch` begins a new epoch, `unreadable_retry` retries values that could not be opened. `reader`,
//! `history` and `lookup` are the SQL of readers, `latest_revision` queries the head, `wake` receives notifications of commits,
//! `compaction` deletes old history.

mod archive;
mod archive_upkeep;
mod before;
mod clock;
mod commit;
mod compaction;
mod connection;
mod epoch;
mod failure;
mod fatal;
mod find;
mod follow;
mod heal;
mod high_water;
mod history;
mod import;
mod import_archive;
mod latest;
mod list;
mod load;
mod meta;
mod open;
mod outage;
mod pending;
mod pool;
mod read;
mod row;
mod session;
mod settings;
mod source;
mod source_archive;
mod switch;
mod wake;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::tasks::TaskSet;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

pub use self::import::PostgresTarget;
pub use self::open::PostgresError;
pub use self::settings::{InvalidUrl, PostgresSettings};
pub use self::source::PostgresSource;
pub use self::switch::PostgresSwitch;

use self::commit::Statement;
use self::compaction::{Compactor, Unswept};
use self::high_water::{Head, Recorded};
use self::latest::Asking;
use self::pool::Connections;
use self::read::Reader;
use self::writer::Writer;
use crate::archive::{PastQuery, PastStates};
use crate::cache::{Budget, Cache};
use crate::copy::{ArchiveAt, CopySource};
use crate::current::{Found, State};
use crate::ending::Ending;
use crate::error::StoreError;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::index::Indexer;
use crate::key::{Key, Resource};
use crate::latest::Latest;
use crate::metrics::Metrics;
use crate::publish::{HistoryBytes, Publisher};
use crate::record::Record;
use crate::reseal::ResealedPast;
use crate::scope::{ResourceFilter, Scope};
use crate::seal::Seal;
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::store::{ListAt, Page, SealedOtherwise, Store};
use crate::submit::{CommitRequest, Submitter};
use crate::subscription::selection::Selection;
use crate::subscription::{Subscription, WatchError};
use crate::txn::{Committed, Txn, TxnError};
use crate::unreadable::{Condition, Unreadable};

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
            Some(path) => {
                Recorded::read(path.clone()).await.map_err(|error| PostgresError::File { path, error })?
            }
            None => Recorded::Nothing,
        };
        let opened = open::open(&postgres, &recorded).await?;
        let meta = opened.meta;
        let (head, heads) = watch::channel((meta.revision, meta.mark));
        let hub = Hub::new(meta.revision, meta.compacted, &settings, metrics.subscriptions.clone());
        let cache = Cache::new(Budget::new(&settings, &metrics), meta.revision, true);
        let (hub, cache) = (Arc::new(hub), Arc::new(cache));
        opened.resources.iter().for_each(|resource| drop(cache.slot(resource)));
        let (history, wake) = (Arc::new(HistoryBytes::default()), Arc::new(Notify::new()));
        let pool = Arc::new(Connections::new(&postgres));
        let asking = Asking {
            connections: pool.clone(),
            hub: hub.clone(),
            identity: meta.identity.clone(),
            wake: wake.clone(),
        };
        let (latest, asking) = Latest::new(asking, hub.clone(), postgres.statement_timeout);
        let reader = Arc::new(Reader {
            pool,
            identity: meta.identity.clone(),
            wake: wake.clone(),
            indexer,
            seal: seal.clone(),
            cache: cache.clone(),
            hub: hub.clone(),
            metrics: metrics.clone(),
            latest,
            // One connection remains for other reads.
            resumes: Semaphore::new((postgres.read_connections.saturating_sub(1) as usize).max(1)),
        });
        let compactor = Arc::new(Compactor {
            reader: reader.clone(),
            history: history.clone(),
            retention: settings.history_retention,
            max_bytes: settings.history_max_bytes,
            marks_kept: settings.marks_kept.max(settings.archive.longest()),
            archive: settings.archive.clone(),
            archive_max_bytes: settings.archive_max_bytes,
            interval: settings.compaction_interval,
            delay: postgres.sweep_delay,
            unswept: Unswept::default(),
        });
        let (requests, queue) = mpsc::channel(settings.write_queue.max(1));
        let group_operations = settings.group_operations.max(1);
        let closing = tasks.token().child_token();
        let writer = Writer {
            settings: postgres.clone(),
            connection: Some(opened.writer),
            statement: Statement::new(opened.notifies),
            requests: queue,
            wake: wake.clone(),
            publisher: Publisher { cache, hub: hub.clone(), history, metrics },
            reader: reader.clone(),
            identity: meta.identity.clone(),
            revision: meta.revision,
            mark: meta.mark,
            tail: opened.tail,
            wary: 0,
            heals_at: None,
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
            closing.run_until_cancelled(asking).await;
        });
        // Transaction poolers deliver no notifications.
        if opened.notifies && !postgres.transaction_pooler {
            let listening = wake::listen(postgres, hub, wake);
            let closing = store.closing.clone();
            tasks.spawn("store-listener", async move {
                closing.run_until_cancelled(listening).await;
            });
        }
        Ok(store)
    }

    fn start(&self, writer: Writer, mark: Option<(PathBuf, watch::Receiver<Head>)>, tasks: &TaskSet) {
        let ending =
            Ending { hub: self.reader.hub.clone(), closed: self.closed.clone(), tasks: tasks.clone() };
        let identity = self.identity.clone();
        let recorder = async move {
            if let Some((path, heads)) = mark {
                high_water::record(path, identity, heads).await;
            }
        };
        tasks.spawn("store-writer", async move {
            let writing = async {
                let ended = writer.run().await;
                // The process then ends, even if the data folder does not respond.
                if let Err(error) = &ended {
                    ending.tasks.fail("store-writer", &error.to_string());
                }
            };
            tokio::join!(writing, recorder);
            drop(ending);
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

    fn commit(&self, txns: Vec<Txn>) -> BoxFuture<'_, Vec<Result<Committed, TxnError>>> {
        Box::pin(self.submitter.write(txns, &*self.reader))
    }

    fn snapshot<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        Box::pin(async move { self.reader.snapshot(&self.reader.cache.slot(resource)).await })
    }

    fn state<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<State, StoreError>> {
        Box::pin(async move { self.reader.current(&self.reader.cache.slot(resource)).await })
    }

    fn find<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Found, StoreError>> {
        Box::pin(self.reader.find(key))
    }

    fn damaged_keys<'a>(&'a self, _: &'a Resource) -> BoxFuture<'a, Result<Vec<Unreadable>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn keep(&self, resource: &Resource) {
        self.reader.cache.keep(resource);
    }

    fn current(&self, _: &Resource) -> Option<Snapshot> {
        None
    }

    fn cached(&self, resource: &Resource) -> Option<Snapshot> {
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

    fn past(&self, query: PastQuery) -> BoxFuture<'_, Result<PastStates, StoreError>> {
        Box::pin(self.reader.past_of(query))
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
        Box::pin(self.reader.latest.revision())
    }

    fn wait_for(&self, revision: i64) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.reader.hub.reached(revision, self.closed.clone()))
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

    fn owners(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(self.reader.owners())
    }

    fn deleting(&self) -> BoxFuture<'_, Result<Vec<Key>, StoreError>> {
        Box::pin(self.reader.deleting())
    }

    fn counts(&self) -> BoxFuture<'_, Result<Vec<(Resource, u64)>, StoreError>> {
        Box::pin(self.reader.counts())
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

    fn is_sealed_otherwise<'a>(
        &'a self,
        key: &'a Key,
        revision: i64,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.reader.is_sealed_otherwise(key, revision))
    }

    fn sealed_otherwise<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<SealedOtherwise, StoreError>> {
        Box::pin(self.reader.sealed_otherwise(resource))
    }

    fn reseal_past(&self, until: i64, behind: ArchiveAt) -> BoxFuture<'_, Result<ResealedPast, StoreError>> {
        let source = self.copy_source();
        Box::pin(async move { self.compactor.reseal(&*source, until, behind).await })
    }

    fn copy_source(&self) -> Arc<dyn CopySource> {
        Arc::new(PostgresSource::of_store(self.reader.pool.clone(), self.reader.seal.clone()))
    }

    fn condition(&self) -> Condition {
        Condition { unreadable: self.reader.cache.unreadable(), ..Condition::default() }
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
