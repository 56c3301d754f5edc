//! The [`Store`] trait, which SQLite, PostgreSQL and etcd implement.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::archive::{PastQuery, PastStates};
use crate::copy::{ArchiveCursor, CopySource};
use crate::current_state::{CurrentState, ObjectLookup};
use crate::error::StoreError;
pub use crate::identity::Identity;
use crate::key::{Key, Resource};
use crate::record::Record;
use crate::reseal::ResealProgress;
use crate::scope::{ResourceFilter, Scope};
use crate::snapshot::Snapshot;
use crate::subscription::{Subscription, WatchError};
use crate::txn::{CommittedTxn, Txn, TxnError};
use crate::unreadable::{StoreCondition, Unreadable};

/// Query for the objects of a scope at one revision.
#[derive(Clone, Debug)]
pub struct ListAt {
    /// Scope of the objects.
    pub scope: Scope,
    /// Revision to read.
    pub revision: i64,
    /// Only keys whose [`Key::path`] is greater than this path.
    pub after: Option<String>,
    /// Maximum number of records; `None` if unlimited.
    pub limit: Option<usize>,
    /// True if [`Page::remaining`] must be exact. The count reads all keys that follow the page.
    pub exact_count: bool,
}

/// Result of a [`ListAt`] query.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Records in key order.
    pub records: Vec<Arc<Record>>,
    /// Number of records after the last of `records`: 0 on the last page, otherwise at least 1, and exact if it was counted.
    pub remaining: u64,
    /// Unreadable objects of the scope within this page; `records` does not contain them.
    pub unreadable: Vec<Unreadable>,
}

impl Page {
    /// Creates the page from a snapshot that is valid at the revision of the query.
    pub(crate) fn from_snapshot(snapshot: &Snapshot, query: &ListAt) -> Self {
        let namespace = query.scope.namespace.as_deref();
        let range = snapshot.range(namespace, query.after.as_deref());
        let (total, limit) = (range.len(), query.limit.unwrap_or(usize::MAX));
        let records: Vec<_> = range.take(limit).cloned().collect();
        let remaining = (total - records.len()) as u64;
        Self { records, remaining, unreadable: snapshot.unreadable_in(namespace).cloned().collect() }
    }
}

/// Objects of a resource whose seal differs from the seal that a write would apply now.
#[derive(Clone, Debug, Default)]
pub struct StaleSeals {
    /// Number of objects of the resource.
    pub objects: u64,
    /// Keys and revisions of the objects with a stale seal, ordered by revision.
    pub stale: Vec<(Key, i64)>,
    /// Number of unreadable objects.
    pub unreadable: u64,
}

/// The committed log, its current state and its history.
///
/// Used as `Arc<dyn Store>`. Revisions are global, strictly increasing, and visible in order. Callers must not rely on the
/// absence of gaps.
pub trait Store: Send + Sync + 'static {
    /// Returns the identity of the store.
    fn identity(&self) -> &Identity;

    /// Commits Txns. Each Txn succeeds or fails as a whole, and the results are in the order of the Txns. Returns when the
    /// accepted Txns are durable and visible in [`Store::snapshot`] and [`Store::revision`]. Waits while the queue of the
    /// writer is full.
    ///
    /// Dropping the future does not cancel Txns that are already queued.
    fn commit(&self, txns: Vec<Txn>) -> BoxFuture<'_, Vec<Result<CommittedTxn, TxnError>>>;

    /// Returns the complete current state of a resource, with a revision at which it is exact. It includes every commit, of any
    /// process, that was acknowledged before the call. The first call for a resource loads it into the cache; unreadable
    /// objects are logged then and kept apart ([`Snapshot::unreadable`]). A resource that does not fit into the cache is read
    /// from the database for each call: callers that do not need all objects use [`Store::current_state`] or [`Store::find`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn snapshot<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<Snapshot, StoreError>>;

    /// Returns the current state of a resource: a snapshot if the resource is cached, otherwise the revision to read. It includes
    /// every commit, of any process, that was acknowledged before the call. The first call for a resource loads it if it fits
    /// into the cache.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn current_state<'a>(&'a self, resource: &'a Resource)
    -> BoxFuture<'a, Result<CurrentState, StoreError>>;

    /// Returns one object from the state that [`Store::current_state`] describes.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Sealed`, `Closed`.
    fn find<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<ObjectLookup, StoreError>>;

    /// Returns the objects of a resource whose keys cannot be read, which only SQLite can have. A resource that does not fit into
    /// the cache is scanned once.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn damaged_keys<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Vec<Unreadable>, StoreError>>;

    /// Keeps this resource in the cache once it is loaded, regardless of the cache budget. For small resources whose
    /// [`Store::cached_snapshot`] is used.
    fn pin(&self, resource: &Resource);

    /// Returns [`Store::snapshot`] without waiting: `None` if the resource is not cached, or if the database must be queried
    /// because other processes may write to it.
    fn try_snapshot(&self, resource: &Resource) -> Option<Snapshot>;

    /// Returns the state of a cached resource as this process knows it: with its own writes and every commit that was published
    /// before. May be older than the database if other processes write to it. `None` if the resource is not cached.
    fn cached_snapshot(&self, resource: &Resource) -> Option<Snapshot>;

    /// Returns the objects of a scope at one revision.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list_at(&self, query: ListAt) -> BoxFuture<'_, Result<Page, StoreError>>;

    /// Returns one object at one revision.
    ///
    /// # Errors
    /// [`StoreError`].
    fn get_at<'a>(
        &'a self,
        key: &'a Key,
        revision: i64,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, StoreError>>;

    /// Returns the objects of a scope at one revision, which may be older than the history of watches: reads the archive of the
    /// resource ([`crate::Settings::archive`]) as well as the history of [`Store::list_at`]. Ignores `exact_count`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list_past(&self, query: ListAt) -> BoxFuture<'_, Result<Page, StoreError>>;

    /// Returns past states of an object, newest first, from the history and the archive. On etcd, only those of an existing
    /// object since its creation.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Sealed`, `Closed`.
    fn past_states(&self, query: PastQuery) -> BoxFuture<'_, Result<PastStates, StoreError>>;

    /// Subscribes to all changes of a scope with a revision greater than `from`, in order and without gaps. `from` may
    /// be in the future.
    ///
    /// # Errors
    /// [`WatchError::Compacted`] if the changes since `from` are no longer stored; [`WatchError::Closed`].
    fn watch(&self, scope: Scope, from: i64) -> Result<Subscription, WatchError>;

    /// Subscribes to the log after revision `from`, limited to the resources that the filter accepts, in order and without gaps.
    ///
    /// # Errors
    /// Same as [`Store::watch`].
    fn follow(&self, filter: ResourceFilter, from: i64) -> Result<Subscription, WatchError>;

    /// Returns the current revision: all commits up to it are durable and visible.
    fn revision(&self) -> i64;

    /// Returns a receiver of the current revision.
    fn revisions(&self) -> watch::Receiver<i64>;

    /// Returns the revision that a linearizable read starting now must include. Queries the database if other processes may
    /// write to it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn latest_revision(&self) -> BoxFuture<'_, Result<i64, StoreError>>;

    /// Waits until [`Store::revision`] is at least `revision`. Callers set the deadline.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    fn wait_for_revision(&self, revision: i64) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the revision at a time in Unix seconds: every write up to it is at least that old. On etcd, the resolution is the
    /// compaction interval. Returns 0 if no record reaches that far back.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn revision_at(&self, time: i64) -> BoxFuture<'_, Result<i64, StoreError>>;

    /// Returns the oldest revision that can be read and watched from.
    fn compacted(&self) -> i64;

    /// Deletes history before `revision` (at most the current one) and releases free pages of the database file.
    /// Returns the new [`Store::compacted`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn compact(&self, revision: i64) -> BoxFuture<'_, Result<i64, StoreError>>;

    /// Returns the keys of existing objects of all resources with an owner reference to this UID, in key order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn dependents<'a>(&'a self, owner_uid: &'a str) -> BoxFuture<'a, Result<Vec<Key>, StoreError>>;

    /// Returns the distinct UIDs in owner references of existing objects. Does not check that the owners exist.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn owner_uids(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// Returns the keys of existing objects that are being deleted (`metadata.deletionTimestamp`), in key order. May include an
    /// object that contains this text in another field. Scans the whole store: for the start of a controller.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn terminating_keys(&self) -> BoxFuture<'_, Result<Vec<Key>, StoreError>>;

    /// Returns the resources that have objects in this namespace, sorted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn resources_in<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, Result<Vec<Resource>, StoreError>>;

    /// Returns the number of objects of each resource that has any. Uses an index and loads no objects.
    fn object_counts(&self) -> BoxFuture<'_, Result<Vec<(Resource, u64)>, StoreError>>;

    /// Returns the average size in bytes of a stored object of each resource, sorted. Reads a sample of the objects.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn average_sizes(&self) -> BoxFuture<'_, Result<Vec<(Resource, u64)>, StoreError>>;

    /// True if there are seal rules, including rules that only decrypt.
    fn has_seal_rules(&self) -> bool;

    /// Returns the stored resources that seal rules cover, sorted.
    fn sealed_resources(&self) -> Vec<Resource>;

    /// Returns true if the state of this revision has a stale seal, as in [`Store::stale_seals`]. Reads nothing if no
    /// rule covers the resource.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Sealed`, `Closed`.
    fn has_stale_seal<'a>(&'a self, key: &'a Key, revision: i64) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns the objects of a resource with a stale seal: sealed with another provider or key than writes use now,
    /// or not at all.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Sealed`, `Closed`.
    fn stale_seals<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<StaleSeals, StoreError>>;

    /// Seals the next page of past states after a cursor as writes would seal them now, where their seals are stale. Covers
    /// states that are or will be in the archive, and that were superseded up to a revision for which [`Store::compact`] was
    /// called. Readers and watchers see no change. Does nothing if there is no archive.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Sealed`, `Closed`.
    fn reseal_past_states(
        &self,
        _until: i64,
        _after: ArchiveCursor,
    ) -> BoxFuture<'_, Result<ResealProgress, StoreError>> {
        Box::pin(std::future::ready(Ok(ResealProgress::default())))
    }

    /// Returns the source of copies of this store. Copies contain database values unchanged, except values that only this
    /// database can interpret, which are converted to the common form.
    fn copy_source(&self) -> Arc<dyn CopySource>;

    /// Returns the problems of the store while it serves.
    fn condition(&self) -> StoreCondition;

    /// Returns the reason why reads of a resource may lack objects without naming them: states are missing, or belong to a
    /// resource whose name cannot be read. `None` if no reason is known, which includes the time until the comparison of
    /// [`StoreCondition::missing_states`]. Only SQLite can have such objects.
    fn incomplete_reason(&self, _resource: &Resource) -> Option<String> {
        None
    }

    /// Stops accepting writes, finishes the queued writes, and closes the database.
    fn close(&self) -> BoxFuture<'_, ()>;
}
