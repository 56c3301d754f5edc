//! Why a copy was not made, or not taken.

use std::io;
use std::path::PathBuf;

use portico_gostd::os::error_text;

use super::block::FormatError;
use super::extent::Extent;
use crate::key::Key;

/// Why a copy was not made, or not taken.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The SQLite database does not exist.
    #[error("{}: no database found", .0.display())]
    Missing(PathBuf),
    /// A database, or whoever answers for it, failed.
    #[error("{place}: {reason}")]
    Store {
        /// Where it is.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The revision is older than what is kept.
    #[error(
        "revision {revision} is no longer retained: the oldest is {oldest} (--history-retention of the control service; in etcd \
         --etcd-compaction-interval)"
    )]
    Compacted {
        /// What was asked for.
        revision: i64,
        /// The oldest that can be read.
        oldest: i64,
    },
    /// The revision has not been written yet.
    #[error("revision {revision} has not been written yet: the current is {current}")]
    Future {
        /// What was asked for.
        revision: i64,
        /// The current one.
        current: i64,
    },
    /// The revision at a time is not known.
    #[error("no revision is recorded for that time: the oldest readable revision is {oldest}")]
    UnknownTime {
        /// The oldest revision that can be read.
        oldest: i64,
    },
    /// Nobody has noted where the revision stood when.
    #[error(
        "{0}: etcd does not record when a revision was written: use --kubeconfig FILE of a control service that has been \
         running since then, or --at-revision N"
    )]
    NoTimes(String),
    /// Whom an object names as owners cannot be read.
    #[error(
        "{0} is encrypted and was changed during the copy: set --encryption-provider-config, or copy the current revision"
    )]
    Owners(Key),
    /// An object has to be read to be copied, and cannot be.
    #[error("{key} cannot be read: {reason} (encrypted objects need --encryption-provider-config)")]
    Unopened {
        /// Which object.
        key: Key,
        /// Why.
        reason: String,
    },
    /// What is there is what was written by a restore that did not come to its end.
    #[error("{0} contains an incomplete restore or move: --force starts over")]
    HalfRestored(String),
    /// Somebody else has begun a restore into the same place.
    #[error("{0}: another restore or move has started")]
    Overtaken(String),
    /// The revisions of etcd are too far behind those that clients may hold.
    #[error(
        "{place} is at revision {stands}, but clients may hold revisions up to {needed}: create an etcd with a higher \
         revision first (etcdutl snapshot restore --bump-revision)"
    )]
    Behind {
        /// Which etcd.
        place: String,
        /// Its revision.
        stands: i64,
        /// The revision that it must have.
        needed: i64,
    },
    /// Something stored has no place in a copy.
    #[error("{0}: run `portico doctor` for details")]
    Unreadable(String),
    /// It began to be served while it was read.
    #[error("{0} is served since the copy began: run the same command again to continue")]
    Served(String),
    /// The place of a copy is not empty.
    #[error("{place} contains store {store_id} at revision {revision}: --force replaces the store")]
    NotEmpty {
        /// Where it is.
        place: String,
        /// Who is there.
        store_id: String,
        /// Its revision.
        revision: i64,
    },
    /// The place of a move holds the same store, and more of it.
    #[error(
        "--to contains a newer state of this store: epoch {}, revision {}, and --from is at epoch {}, revision {}. Serve --to \
         unchanged, or use --force to start a new epoch without the newer commits", there.identity.epoch, there.revision,
         from.identity.epoch, from.revision
    )]
    HasMore {
        /// What is there.
        there: Extent,
        /// What would come in its place.
        from: Extent,
    },
    /// The place of a copy is in use.
    #[error("{place} is in use by {by}: stop all control services of this database first")]
    InUse {
        /// Where it is.
        place: String,
        /// By whom.
        by: String,
    },
    /// The answer to the last step is lost.
    #[error("{place}: {reason}: the outcome is unknown, check whether the copy exists before you continue")]
    InDoubt {
        /// Where it would be.
        place: String,
        /// Why.
        reason: String,
    },
    /// Revisions come to an end.
    #[error("no revisions are left for a new epoch")]
    Exhausted,
    /// The file exists.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// Somebody else is making the same file.
    #[error("{} is being written by another process", .0.display())]
    Busy(PathBuf),
    /// The backup cannot be read.
    #[error("{}: {error}", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        error: FormatError,
    },
    /// A file cannot be made, moved, written or read.
    #[error("{}: {}", path.display(), error_text(error))]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}
