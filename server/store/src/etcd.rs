//! Store in etcd with the keys, values and revisions of kube-apiserver. Servers of both kinds may share one etcd.
//!
//! `open` reads the identity of the store, `follow` runs the watch that feeds cache and subscriptions, `unreadable_retry`
//! retries values that could not be opened, `write` executes transactions (`plan` builds them), `latest_revision` queries the
//! head, `reader`, `history` and `lookup` serve reads, `owner_index` indexes owner references, `compaction` deletes old
//! history, `leases` manages leases of expiring objects. `gate` is the record that stops writes. `source`, `switch` and
//! `target` implement copies of a `prefix`. `keys` and `values` implement the layout, which the registry defines ([`Layout`]).
//! `client`, `members` and `wire` implement etcd's protocol.

mod client;
mod compaction;
mod events;
mod failure;
mod follow;
mod gate;
mod history;
mod keys;
mod latest_revision;
mod layout;
mod leases;
mod lookup;
mod members;
mod object_codec;
mod open;
mod owner_index;
mod pages;
mod past_states;
mod plan;
mod prefix;
mod reader;
mod settings;
mod source;
mod switch;
mod target;
mod unreadable_retry;
mod values;
mod wire;
mod write;

use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::tasks::TaskSet;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

pub use self::layout::Layout;
pub use self::object_codec::ObjectCodec;
pub use self::open::EtcdError;
pub use self::settings::EtcdSettings;
pub use self::source::EtcdSource;
pub use self::switch::EtcdSwitch;
pub use self::target::EtcdTarget;

use self::client::Client;
use self::compaction::{Compactor, RevisionMarks};
use self::follow::{FollowProgress, Follower};
use self::keys::EtcdKeys;
use self::latest_revision::HeadQuery;
use self::leases::Leases;
use self::open::Meta;
use self::owner_index::OwnerIndex;
use self::reader::Reader;
use self::values::ValueCodec;
use self::write::Writer;
use crate::archive::{PastQuery, PastStates};
use crate::cache::{Budget, Cache};
use crate::copy::CopySource;
use crate::current_state::{CurrentState, ObjectLookup};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::key::{Key, Resource};
use crate::latest_revision::LatestRevision;
use crate::metrics::Metrics;
use crate::publish::{HistoryBytes, Publisher};
use crate::record::Record;
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

/// Maximum number of concurrent history reads. Each waits for etcd, which synchronizes watches that start in the
/// past every 100 ms.
const MAX_HISTORY_READS: usize = 64;

/// [`Store`] in etcd.
pub struct EtcdStore {
    identity: Identity,
    reader: Arc<Reader>,
    submitter: Submitter<CommitRequest>,
    compactor: Arc<Compactor>,
    copy_source: Arc<EtcdSource>,
    closing: CancellationToken,
    closed: CancellationToken,
}

impl EtcdStore {
    /// Opens the store under a prefix of etcd, and starts the writer, the follower and the compaction in `tasks`. Ignores the
    /// `settings` of files, of the age and size of history, and of the cache size.
    ///
    /// When `tasks` is cancelled, the store finishes the queued writes and closes.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub async fn open(
        etcd: EtcdSettings,
        settings: Settings,
        codec: ObjectCodec,
        metrics: Metrics,
        tasks: &TaskSet,
    ) -> Result<Self, EtcdError> {
        let refused = |failure: failure::EtcdFailure| EtcdError::Unreachable {
            place: etcd.place(),
            reason: failure.log_text(),
        };
        let client = Client::new(&etcd).map_err(refused)?;
        let keys = EtcdKeys::new(etcd.root(), codec.layout.clone());
        let (meta, compacted) = open::open(&client, &etcd, &keys).await?;
        let hub = Arc::new(Hub::new(meta.revision, compacted, &settings, metrics.subscriptions.clone()));
        let (wanted_revision, wants) = watch::channel(0);
        let head_query = HeadQuery {
            client: client.clone(),
            key: open::record_key(&etcd.root()),
            wanted_revision: wanted_revision.clone(),
        };
        let (latest_revision, query_task) =
            LatestRevision::new(head_query, hub.clone(), etcd.request_timeout);
        let reader = Arc::new(Reader {
            client,
            keys,
            values: ValueCodec { layout: codec.layout, indexer: codec.indexer, seal: codec.seal },
            // Writers only consult the cache for unreadable objects, so it contains all objects.
            cache: Arc::new(Cache::new(Budget::unbounded(&metrics), meta.revision, true)),
            hub,
            metrics,
            latest_revision,
            owner_index: Arc::new(OwnerIndex::default()),
            root: etcd.root(),
            history_permits: Semaphore::new(MAX_HISTORY_READS),
        });
        reader.note_resources().await.map_err(refused)?;
        let (requests, queue) = mpsc::channel(settings.write_queue.max(1));
        let group_operations = settings.group_operations.max(1);
        let compactor = Arc::new(Compactor {
            reader: reader.clone(),
            interval: etcd.compaction_interval,
            marks: Arc::new(RevisionMarks::new(settings.mark_retention)),
            mark_interval: settings.compaction_interval,
        });
        let store = Self {
            identity: meta.identity.clone(),
            reader: reader.clone(),
            // Values are encrypted for their location in etcd, when the transaction is encoded.
            submitter: Submitter { requests, seal: Seal::none(), group_operations, concurrent: true },
            copy_source: Arc::new(EtcdSource::from_store(&reader, compactor.marks.clone())),
            compactor,
            closing: tasks.token().child_token(),
            closed: CancellationToken::new(),
        };
        let writer = Writer {
            reader,
            leases: Leases::new(&etcd),
            txn_permits: Semaphore::new(group_operations),
            publish_timeout: etcd.request_timeout,
            wanted_revision,
        };
        let written = store.start_writer(writer, queue, tasks);
        store.start_follower(&meta, wants, written, tasks);
        tasks.spawn("store-compaction", store.compactor.clone().run(store.closing.clone()));
        let closing = store.closing.clone();
        tasks.spawn("store-latest", async move {
            closing.run_until_cancelled(query_task).await;
        });
        Ok(store)
    }

    /// Starts the writer. Returns a token that is cancelled when the writer has ended.
    fn start_writer(
        &self,
        writer: Writer,
        queue: mpsc::Receiver<CommitRequest>,
        tasks: &TaskSet,
    ) -> CancellationToken {
        let written = CancellationToken::new();
        let (closing, ended) = (self.closing.clone(), written.clone().drop_guard());
        tasks.spawn("store-writer", async move {
            writer.run(queue, closing).await;
            drop(ended);
        });
        written
    }

    /// Starts the follower, which runs until all writes are finished.
    fn start_follower(
        &self,
        meta: &Meta,
        wanted_revision: watch::Receiver<i64>,
        written: CancellationToken,
        tasks: &TaskSet,
    ) {
        let reader = self.reader.clone();
        let publisher = Publisher {
            cache: reader.cache.clone(),
            hub: reader.hub.clone(),
            history: Arc::new(HistoryBytes::default()),
            metrics: reader.metrics.clone(),
        };
        let (identity, cluster_id) = (self.identity.clone(), meta.cluster_id);
        let progress = FollowProgress::at(meta.revision);
        let follower =
            Follower { reader, publisher, identity, cluster_id, wanted_revision, progress, closing: written };
        let guard =
            WriterGuard { hub: self.reader.hub.clone(), closed: self.closed.clone(), tasks: tasks.clone() };
        tasks.spawn("store-follower", async move {
            if let Err(error) = follower.run().await {
                guard.tasks.fail("store-follower", &error.to_string());
            }
            drop(guard);
        });
    }

    fn subscribe(&self, selection: Selection, from: i64) -> Result<Subscription, WatchError> {
        Subscription::start(&self.reader.hub, selection, from, self.reader.clone())
    }
}

impl Store for EtcdStore {
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
        Box::pin(async move { self.snapshot(resource).await.map(CurrentState::Cached) })
    }

    fn find<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<ObjectLookup, StoreError>> {
        Box::pin(async move {
            let snapshot = self.snapshot(key.resource()).await?;
            Ok(ObjectLookup::in_snapshot(&snapshot, key))
        })
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
        Box::pin(self.reader.list_at(query))
    }

    fn past_states(&self, query: PastQuery) -> BoxFuture<'_, Result<PastStates, StoreError>> {
        Box::pin(past_states::read_past_states(self, query))
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
        let revision = self.compactor.marks.revision_at(time);
        Box::pin(std::future::ready(Ok(revision)))
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

    fn copy_source(&self) -> Arc<dyn CopySource> {
        self.copy_source.clone()
    }

    fn condition(&self) -> StoreCondition {
        StoreCondition { unreadable: self.reader.cache.unreadable(), ..StoreCondition::default() }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closing.cancel();
        Box::pin(self.closed.cancelled())
    }
}

impl Drop for EtcdStore {
    /// Starts to close the store when it is dropped; its tasks then end.
    fn drop(&mut self) {
        self.closing.cancel();
    }
}
