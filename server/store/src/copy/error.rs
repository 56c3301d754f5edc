//! Errors of copies.

use std::io;
use std::path::PathBuf;

use portico_gostd::os::error_text;

use super::block::FormatError;
use super::store_extent::StoreExtent;
use crate::key::Key;

/// Reason why a copy was not created or not restored.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The SQLite database does not exist.
    #[error("{}: no database found", .0.display())]
    Missing(PathBuf),
    /// A database or a control service failed.
    #[error("{place}: {reason}")]
    Store {
        /// Location of the database or the service.
        place: String,
        reason: String,
    },
    /// The revision is older than the history.
    #[error(
        "revision {revision} is no longer retained: the oldest is {oldest} (--history-retention of the control service; in etcd \
         --etcd-compaction-interval)"
    )]
    Compacted {
        /// Requested revision.
        revision: i64,
        /// Oldest readable revision.
        oldest: i64,
    },
    /// The revision has not been written yet.
    #[error("revision {revision} has not been written yet: the current is {current}")]
    Future {
        /// Requested revision.
        revision: i64,
        /// Current revision.
        current: i64,
    },
    /// The revision at this time is not known.
    #[error("no revision is recorded for that time: the oldest readable revision is {oldest}")]
    UnknownTime {
        /// Oldest readable revision.
        oldest: i64,
    },
    /// The source has no record of revisions by time.
    #[error(
        "{0}: etcd does not record when a revision was written: use --kubeconfig FILE of a control service that has been \
         running since then, or --at-revision N"
    )]
    NoTimes(String),
    /// The owners of an object cannot be read.
    #[error(
        "{0} is encrypted and was changed during the copy: set --encryption-provider-config, or copy the current revision"
    )]
    Owners(Key),
    /// The copy must decode an object that cannot be opened.
    #[error("{key} cannot be read: {reason} (encrypted objects need --encryption-provider-config)")]
    Unopened {
        /// Key of the object.
        key: Key,
        reason: String,
    },
    /// The existing store is the result of a restore that has not finished.
    #[error("{0} contains an incomplete restore or move: --force starts over")]
    HalfRestored(String),
    /// Another process has started a restore to the same target.
    #[error("{0}: another restore or move has started")]
    Overtaken(String),
    /// The revision of etcd is too far below the revisions that clients may have seen.
    #[error(
        "{place} is at revision {current}, but clients may hold revisions up to {needed}: create an etcd with a higher \
         revision first (etcdutl snapshot restore --bump-revision)"
    )]
    Behind {
        /// Address of the etcd.
        place: String,
        current: i64,
        /// Revision that it must have.
        needed: i64,
    },
    /// The store contains data that a copy cannot contain.
    #[error("{0}: run `portico doctor` for details")]
    Unreadable(String),
    /// The target was served during the copy.
    #[error("{0} is served since the copy began: run the same command again to continue")]
    Served(String),
    /// The target of a copy is not empty.
    #[error("{place} contains store {store_id} at revision {revision}: --force replaces the store")]
    NotEmpty {
        /// Location of the target.
        place: String,
        /// ID of the existing store.
        store_id: String,
        /// Revision of the existing store.
        revision: i64,
    },
    /// The target of a migration contains a newer state of the same store.
    #[error(
        "--to contains a newer state of this store: epoch {}, revision {}, and --from is at epoch {}, revision {}. Serve --to \
         unchanged, or use --force to start a new epoch without the newer commits", existing.identity.epoch, existing.revision,
         source_extent.identity.epoch, source_extent.revision
    )]
    TargetIsNewer {
        /// Extent of the existing store.
        existing: StoreExtent,
        /// Extent of the source.
        source_extent: StoreExtent,
    },
    /// The target is in use.
    #[error("{place} is in use by {by}: stop all control services of this database first")]
    InUse {
        /// Location of the target.
        place: String,
        /// Process that uses the target.
        by: String,
    },
    /// The response to the last step was lost.
    #[error("{place}: {reason}: the outcome is unknown, check whether the copy exists before you continue")]
    InDoubt {
        /// Location of the target.
        place: String,
        reason: String,
    },
    /// No higher revisions are available.
    #[error("no revisions are left for a new epoch")]
    Exhausted,
    /// The file already exists.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// Another process is writing the same file.
    #[error("{} is being written by another process", .0.display())]
    Busy(PathBuf),
    /// The backup cannot be read.
    #[error("{}: {error}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        error: FormatError,
    },
    /// A file cannot be created, renamed, written or read.
    #[error("{}: {}", path.display(), error_text(error))]
    File {
        /// Path of the file.
        path: PathBuf,
        error: io::Error,
    },
}
