//! Revisions and watch: the committed log, group commit, the cache of the current state, broadcast, compaction.
//!
//! The only crate that knows SQL, and etcd. It must not know kinds, served versions, HTTP or gRPC: an object is a [`Key`] and
//! canonical bytes, and what is read out of the bytes comes from the [`Indexer`] that the registry hands in.
//!
//! The way of a write: [`Store::commit`] puts [`Txn`]s into the writer's bounded queue; the writer takes what is
//! queued as one group, checks each Txn inside one SQL transaction, makes it durable, applies it to the cache, moves
//! the revision, answers the callers, then hands the events to the subscriptions.

mod cache;
mod codec;
mod decode;
mod ending;
mod error;
mod etcd;
mod event;
mod exact;
mod group;
mod hub;
mod index;
mod key;
mod metrics;
mod postgres;
mod publish;
mod record;
mod scope;
mod seal;
mod settings;
mod signature;
mod snapshot;
mod sqlite;
mod store;
mod submit;
mod subscription;
mod txn;
mod unix_time;
mod unreadable;

pub use error::StoreError;
pub use etcd::{EtcdError, EtcdSettings, EtcdStore, Known, Layout};
pub use event::{Event, EventType};
pub use index::{IndexError, Indexed, Indexer, MetadataIndexer};
pub use key::{Key, Resource};
pub use metrics::Metrics;
pub use postgres::{InvalidUrl, PostgresError, PostgresSettings, PostgresStore};
pub use record::{Record, Value};
pub use scope::{Only, ResourceFilter, Scope};
pub use seal::{
    CipherKey, CipherKind, Envelope, EnvelopeTimes, KeyError, KeyService, KeyServiceError, KeyStatus,
    MaskedRule, Provider, Seal, SealError, SealMetrics, SealRules, WrappedKey,
};
pub use settings::Settings;
pub use signature::Signature;
pub use snapshot::Snapshot;
pub use sqlite::{
    BackedUp, BackupError, DEFAULT_REVISION_BUMP, Doctor, Examination, Finding, OpenError, Restored,
    SqliteStore, backup, restore,
};
pub use store::{Identity, ListAt, Page, SealedOtherwise, Store};
pub use subscription::{Subscription, WatchError};
pub use txn::{Change, Committed, Expect, Operation, Txn, TxnError};
pub use unreadable::{Condition, Unreadable};
