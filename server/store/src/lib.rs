//! Storage with revisions and watches: the committed log, group commit, the cache of current states, event fan-out, compaction.
//!
//! The only crate that uses SQL and etcd. Does not depend on kinds, served versions, HTTP or gRPC: an object is a [`Key`] and
//! canonical bytes. The registry passes an [`Indexer`], which extracts fields from the bytes.
//!
//! [`Store::commit`] puts [`Txn`]s into the bounded queue of the writer. The writer takes the queued Txns as one group, checks
//! each Txn within one SQL transaction, makes the group durable, applies it to the cache, advances the revision, answers the
//! callers, then passes the events to the subscriptions.

mod archive;
mod archive_rules;
mod basis;
mod cache;
mod checksum;
mod codec;
mod copy;
mod current;
mod decode;
mod ending;
mod epoch;
mod error;
mod etcd;
mod event;
mod exact;
mod group;
mod hub;
mod identity;
mod index;
mod key;
mod latest;
mod load;
mod metrics;
mod new_file;
mod outage_log;
mod owners;
mod postgres;
mod publish;
mod read_only;
mod record;
mod reseal;
mod scope;
mod seal;
mod settings;
mod signature;
mod snapshot;
mod sqlite;
mod store;
mod store_switch;
mod submit;
mod subscription;
mod txn;
mod unix_time;
mod unreadable;

pub use archive::{PastQuery, PastState, PastStates};
pub use archive_rules::ArchiveRules;
pub use copy::{
    ArchiveAt, ArchivePart, ArchivedState, Backup, BackupDone, BackupFile, BackupPart, Changes, CopyError,
    CopySource, CopyTarget, Counts, Extent, Finished, FormatError, Header, Kept, Lost, Migrated, Migration,
    MigrationStep, RestoredFrom, Restoring, StoredState, TimeMark, WriteSwitch, back_up,
    check as check_backup, migrate, restore_from,
};
pub use current::{Found, State};
pub use error::StoreError;
pub use etcd::{EtcdError, EtcdSettings, EtcdSource, EtcdStore, EtcdSwitch, EtcdTarget, Known, Layout};
pub use event::{Event, EventType};
pub use identity::Identity;
pub use index::{IndexError, Indexed, Indexer, MetadataIndexer};
pub use key::{Key, Resource};
pub use latest::ask_once;
pub use metrics::Metrics;
pub use postgres::{
    InvalidUrl, PostgresError, PostgresSettings, PostgresSource, PostgresStore, PostgresSwitch,
    PostgresTarget,
};
pub use record::{Record, Value};
pub use reseal::ResealedPast;
pub use scope::{Only, ResourceFilter, Scope};
pub use seal::{
    CipherKey, CipherKind, Envelope, EnvelopeTimes, KeyError, KeyService, KeyServiceError, KeyStatus,
    MaskedRule, Provider, Seal, SealError, SealMetrics, SealRules, WrappedKey,
};
pub use settings::Settings;
pub use signature::Signature;
pub use snapshot::Snapshot;
pub use sqlite::{
    BackupError, DEFAULT_REVISION_BUMP, Doctor, Examination, ExportEnd, Finding, OpenError, Restored,
    SqliteSource, SqliteStore, SqliteTarget, restore,
};
pub use store::{ListAt, Page, SealedOtherwise, Store};
pub use store_switch::StoreSwitch;
pub use subscription::{Subscription, WatchError};
pub use txn::{Change, Committed, Expect, Operation, Txn, TxnError};
pub use unix_time::AgeClock;
pub use unreadable::{Condition, Incomplete, Unreadable};
