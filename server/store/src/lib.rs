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
mod cache;
mod checksum;
mod codec;
mod copy;
mod current_state;
mod decode;
mod epoch;
mod error;
mod etcd;
mod event;
mod exact_read;
mod group;
mod hub;
mod identity;
mod index;
mod key;
mod latest_revision;
mod loader;
mod metrics;
mod new_file;
mod outage_log;
mod owner_source;
mod postgres;
mod prior_states;
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
mod writer_guard;

pub use archive::{PastQuery, PastState, PastStates};
pub use archive_rules::ArchiveRules;
pub use copy::{
    ArchiveContents, ArchiveCursor, ArchivePart, ArchivedState, Backup, BackupCounts, BackupFile, BackupPart,
    BackupSummary, Changes, CopyError, CopySource, CopyTarget, FinishedCopy, FormatError, Header, Migration,
    MigrationStep, MigrationSummary, RestoreOptions, RestoreSummary, RevisionGap, StoreExtent, StoredState,
    TimeMark, WriteSwitch, back_up, check as check_backup, migrate, restore_from,
};
pub use current_state::{CurrentState, ObjectLookup};
pub use error::StoreError;
pub use etcd::{EtcdError, EtcdSettings, EtcdSource, EtcdStore, EtcdSwitch, EtcdTarget, Layout, ObjectCodec};
pub use event::{Event, EventType};
pub use identity::Identity;
pub use index::{IndexError, Indexed, Indexer, MetadataIndexer};
pub use key::{Key, Resource};
pub use latest_revision::with_single_revision_check;
pub use metrics::Metrics;
pub use postgres::{
    InvalidUrl, PostgresError, PostgresSettings, PostgresSource, PostgresStore, PostgresSwitch,
    PostgresTarget,
};
pub use record::{Record, Value};
pub use reseal::ResealProgress;
pub use scope::{ObjectFilter, ResourceFilter, Scope};
pub use seal::{
    CipherKey, CipherKind, Envelope, EnvelopeTimes, KeyError, KeyService, KeyServiceError, KeyStatus,
    MaskedRule, Provider, Seal, SealError, SealMetrics, SealRules, WrappedKey,
};
pub use settings::Settings;
pub use signature::Signature;
pub use snapshot::Snapshot;
pub use sqlite::{
    BackupError, DEFAULT_REVISION_BUMP, Doctor, Examination, ExportSummary, Finding, OpenError,
    RestoredDatabase, SqliteSource, SqliteStore, SqliteTarget, restore,
};
pub use store::{ListAt, Page, StaleSeals, Store};
pub use store_switch::StoreSwitch;
pub use subscription::{Subscription, WatchError};
pub use txn::{Change, CommittedTxn, Operation, Precondition, Txn, TxnError};
pub use unix_time::AgeClock;
pub use unreadable::{MissingStates, StoreCondition, Unreadable};
