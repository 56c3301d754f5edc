//! The trait that everybody above speaks to, so that SQLite and PostgreSQL are two implementations of one store.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::archive::{PastQuery, PastStates};
use crate::copy::{ArchiveAt, CopySource};
use crate::current::{Found, State};
use crate::error::StoreError;
pub use crate::identity::Identity;
use crate::key::{Key, Resource};
use crate::record::Record;
use crate::reseal::ResealedPast;
use crate::scope::{ResourceFilter, Scope};
use crate::snapshot::Snapshot;
use crate::subscription::{Subscription, WatchError};
use crate::txn::{Committed, Txn, TxnError};
use crate::unreadable::{Condition, Unreadable};

/// An exact read.
#[derive(Clone, Debug)]
pub struct ListAt {
    /// Which objects.
    pub scope: Scope,
    /// As of exactly this revision.
    pub revision: i64,
    /// Only keys whose [`Key::path`] is greater than this path.
    pub after: Option<String>,
    /// At most so many; None: all.
    pub limit: Option<usize>,
    /// Whether [`Page::remaining`] is exact, which costs a look at all that follows.
    pub counted: bool,
}

/// The answer to a [`ListAt`].
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// In key order.
    pub records: Vec<Arc<Record>>,
    /// How many follow after the last of `records`; 0 on the last page. At least 1 on others, where it was not counted.
    pub remaining: u64,
    /// Objects of the scope that were met and cannot be read; they are not among `records`.
    pub unreadable: Vec<Unreadable>,
}

impl Page {
    /// The answer of a state that was the same at the revision of the query.
    pub(crate) fn of(snapshot: &Snapshot, query: &ListAt) -> Self {
        let namespace = query.scope.namespace.as_deref();
        let range = snapshot.range(namespace, query.after.as_deref());
        let (total, limit) = (range.len(), query.limit.unwrap_or(usize::MAX));
        let records: Vec<_> = range.take(limit).cloned().collect();
        let remaining = (total - records.len()) as u64;
        Self { records, remaining, unreadable: snapshot.unreadable_in(namespace).cloned().collect() }
    }
}

/// Which objects of a resource are not sealed as they would be if they were written now.
#[derive(Clone, Debug, Default)]
pub struct SealedOtherwise {
    /// How many objects there are.
    pub objects: u64,
    /// Those that are not, with their revisions, in the order of these.
    pub stale: Vec<(Key, i64)>,
    /// Those that cannot be read.
    pub unreadable: u64,
}

/// The committed log, its current state and its history.
///
/// Used as `Arc<dyn Store>`. Revisions are global, strictly increasing, visible in order; nobody may rely on the absence
/// of gaps.
pub trait Store: Send + Sync + 'static {
    /// Who this store is.
    fn identity(&self) -> &Identity;

    /// Writes. Each Txn has its own result, in their order; each is all or nothing. Answers when the accepted ones are
    /// durable and visible in [`Store::snapshot`] and [`Store::revision`]. Waits while the writer's queue is full.
    ///
    /// A dropped future does not take back what is queued already.
    fn commit(&self, txns: Vec<Txn>) -> BoxFuture<'_, Vec<Result<Committed, TxnError>>>;

    /// The current state of a resource, whole, with a revision at which it is exact: all that was acknowledged, by whomever,
    /// before this is called. The first ask for a resource loads it; objects that cannot be read are logged then, and kept
    /// apart ([`Snapshot::unreadable`]). One that memory has no room for is read from the database each time, for this caller:
    /// who does not need all of it asks [`Store::state`] or [`Store::find`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn snapshot<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<Snapshot, StoreError>>;

    /// Where the current state of a resource is: all that was acknowledged, by whomever, before this is called. The first ask for
    /// a resource loads it if there is room for it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn state<'a>(&'a self, resource: &'a Resource) -> BoxFuture<'a, Result<State, StoreError>>;

    /// One object as [`Store::state`] has it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Sealed`, `Closed`.
    fn find<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Found, StoreError>>;

    /// The objects of a resource whose keys cannot be read, in SQLite alone there may be some. One that memory has
    /// no room for is looked through once.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn damaged_keys<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Vec<Unreadable>, StoreError>>;

    /// From now on this resource stays in memory once it is there, however little may be held: of those that
    /// [`Store::cached`] is asked for, which have few objects.
    fn keep(&self, resource: &Resource);

    /// [`Store::snapshot`] without a future: none where the resource is not in memory, or others may write to the database, so
    /// that it has to be asked.
    fn current(&self, resource: &Resource) -> Option<Snapshot>;

    /// What this process has seen of a resource, if it is in memory: at least what it has written, and what it was shown before. Where
    /// others may write to the database it may be behind them.
    fn cached(&self, resource: &Resource) -> Option<Snapshot>;

    /// The objects of a scope as of exactly a revision.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list_at(&self, query: ListAt) -> BoxFuture<'_, Result<Page, StoreError>>;

    /// One object as of exactly a revision.
    ///
    /// # Errors
    /// [`StoreError`].
    fn get_at<'a>(
        &'a self,
        key: &'a Key,
        revision: i64,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, StoreError>>;

    /// The objects of a scope as of exactly a revision that watches may have forgotten: as far back as the archive has its resource
    /// ([`crate::Settings::archive`]), and [`Store::list_at`] goes. `counted` has no meaning.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list_past(&self, query: ListAt) -> BoxFuture<'_, Result<Page, StoreError>>;

    /// The states that an object has had, the newest first: those that are kept for watches, and those of the archive. In etcd of an
    /// object that is there, since it was created.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Sealed`, `Closed`.
    fn past(&self, query: PastQuery) -> BoxFuture<'_, Result<PastStates, StoreError>>;

    /// All changes of a scope with a revision greater than `from`, in order, none missing. `from` may lie in the future.
    ///
    /// # Errors
    /// [`WatchError::Compacted`] when the changes since `from` are no longer kept; [`WatchError::Closed`].
    fn watch(&self, scope: Scope, from: i64) -> Result<Subscription, WatchError>;

    /// The one committed log, of the resources that the filter takes, greater than `from`, in order, none missing.
    ///
    /// # Errors
    /// As [`Store::watch`].
    fn follow(&self, filter: ResourceFilter, from: i64) -> Result<Subscription, WatchError>;

    /// The current revision: everything up to it is durable and visible.
    fn revision(&self) -> i64;

    /// The current revision as it moves.
    fn revisions(&self) -> watch::Receiver<i64>;

    /// The revision that a consistent read starting now must have seen: asks the database where others may write to it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn latest_revision(&self) -> BoxFuture<'_, Result<i64, StoreError>>;

    /// Waits until [`Store::revision`] is at least this. Callers set the deadline.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    fn wait_for(&self, revision: i64) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The revision at a time in Unix seconds: every write up to it is at least that old. On etcd as coarse as the compaction
    /// interval; 0 when nothing is known that far back.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn revision_at(&self, time: i64) -> BoxFuture<'_, Result<i64, StoreError>>;

    /// The oldest revision that can be read exactly, and watched from.
    fn compacted(&self) -> i64;

    /// Forgets history before `revision` (at most the current one) and gives the file's free pages back. Answers the
    /// new [`Store::compacted`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn compact(&self, revision: i64) -> BoxFuture<'_, Result<i64, StoreError>>;

    /// The keys of the existing objects that name this uid in an owner reference, whatever their resource; in key order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn dependents<'a>(&'a self, owner_uid: &'a str) -> BoxFuture<'a, Result<Vec<Key>, StoreError>>;

    /// The uids that owner references of existing objects name, each once; whether they exist is not looked at.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn owners(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// The keys of the existing objects that are being deleted (`metadata.deletionTimestamp`), in key order; an object
    /// that only says so elsewhere may be among them. Looks through everything that is stored: for the start of a controller.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn deleting(&self) -> BoxFuture<'_, Result<Vec<Key>, StoreError>>;

    /// The resources that have objects in this namespace, sorted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn resources_in<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, Result<Vec<Resource>, StoreError>>;

    /// How many objects exist of each resource that has any, from an index; nothing is loaded.
    fn counts(&self) -> BoxFuture<'_, Result<Vec<(Resource, u64)>, StoreError>>;

    /// How many bytes a stored object of each resource takes on average, by a sample of them, sorted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Closed`.
    fn average_sizes(&self) -> BoxFuture<'_, Result<Vec<(Resource, u64)>, StoreError>>;

    /// Whether there are rules of what is sealed, also where they say that it is not any more.
    fn has_seal_rules(&self) -> bool;

    /// The resources that are stored and that the rules of what is sealed are about, sorted.
    fn sealed_resources(&self) -> Vec<Resource>;

    /// Whether the state of this revision is not sealed as it would be now, as in [`Store::sealed_otherwise`]. Where no rule is
    /// about the resource, nothing is read.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Sealed`, `Closed`.
    fn is_sealed_otherwise<'a>(
        &'a self,
        key: &'a Key,
        revision: i64,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Which objects of a resource are not sealed as they would be now: with another provider or key, or not at all.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Sealed`, `Closed`.
    fn sealed_otherwise<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<SealedOtherwise, StoreError>>;

    /// Seals the next past states behind a place as they would be now, where they are not: of those that the archive has or will have, and
    /// that were superseded up to a revision, which [`Store::compact`] has been called for. Nobody who reads or watches sees a change.
    /// Where there is no archive nothing is done.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], `Sealed`, `Closed`.
    fn reseal_past(
        &self,
        _until: i64,
        _behind: ArchiveAt,
    ) -> BoxFuture<'_, Result<ResealedPast, StoreError>> {
        Box::pin(std::future::ready(Ok(ResealedPast::default())))
    }

    /// What is stored, for copies: as it stands in the database, or, where that means something in it alone, as other databases keep
    /// it.
    fn copy_source(&self) -> Arc<dyn CopySource>;

    /// What is wrong with the store while it serves.
    fn condition(&self) -> Condition;

    /// Returns why reads of a resource may lack objects without naming them: states are missing, or belong to a resource whose name
    /// cannot be read. `None` if that is not known, which includes the time until the comparison of [`Condition::incomplete`]. In
    /// SQLite alone there may be such objects.
    fn why_incomplete(&self, _resource: &Resource) -> Option<String> {
        None
    }

    /// Stops taking writes, finishes those that are queued, and closes the database.
    fn close(&self) -> BoxFuture<'_, ()>;
}
