//! Settings of a store. Plain values: files and environment variables are read by other crates.

use std::path::PathBuf;
use std::time::Duration;

use crate::archive_rules::ArchiveRules;

/// Settings of a store in a SQLite file.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Database file. A missing folder is created with mode 0700; the file has mode 0600.
    pub path: PathBuf,
    /// Retention of past revisions for watches and exact reads.
    pub history_retention: Duration,
    /// Retention of revision marks, which may exceed that of the history: range of [`crate::Store::revision_at`].
    pub mark_retention: Duration,
    /// Maximum size of superseded values in bytes, regardless of age.
    pub history_max_bytes: u64,
    /// Resources whose past states are archived, and their retention.
    pub archive: ArchiveRules,
    /// Maximum size of the archive in bytes; the oldest states are deleted first, regardless of age.
    pub archive_max_bytes: u64,
    /// Interval of compaction and of shrinking the file.
    pub compaction_interval: Duration,
    /// Maximum size of the database file in bytes; writes beyond it fail like on a full disk. `None` if unlimited.
    pub max_file_bytes: Option<u64>,
    /// Space in bytes, on the disk and beyond `max_file_bytes`, that is reserved for deletions when no other writes are
    /// possible; at most a quarter of the disk.
    pub reserve_bytes: u64,
    /// True if writes are acknowledged only when they are on the disk. Otherwise they are acknowledged when the operating
    /// system has them: a process failure loses nothing, a machine failure may lose the last writes or the whole file.
    pub sync: bool,
    /// True if deleted content is overwritten in the file.
    pub overwrite_deleted: bool,
    /// Maximum size of the cached state in bytes, by the estimated weight of its objects. Resources that do not fit are read
    /// from the database. `None` caches everything that was ever read or written, which etcd always does.
    pub cache_max_bytes: Option<u64>,
    /// Time without use after which a resource may be evicted for another one, and time for which a resource that did not fit
    /// is read from the database before the cache is tried again.
    pub cache_idle_time: Duration,
    /// Requests that wait for the writer.
    pub write_queue: usize,
    /// Operations that one sync makes durable.
    ///
    /// Limit (Storage and watches): further ones go into the next group.
    pub group_operations: usize,
    /// Recent events in memory.
    ///
    /// Limit (Storage and watches): older events are read from history.
    pub ring_events: usize,
    /// Bytes of recent events in memory.
    ///
    /// Limit (Storage and watches, bytes): older events are read from history.
    pub ring_bytes: usize,
    /// Events that wait for one watch of the store.
    pub subscription_events: usize,
    /// Bytes of events that wait for one watch of the store.
    pub subscription_bytes: usize,
    /// Number of connections that load resources and serve exact reads and history. Resuming watches use all but one of them at
    /// a time, or the only one, so that other reads progress however many watches resume.
    pub read_connections: u32,
}

impl Settings {
    /// Returns the default settings with this database file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            history_retention: Duration::from_secs(300),
            mark_retention: Duration::from_secs(2 * 3600),
            history_max_bytes: 256 << 20,
            archive: ArchiveRules::default(),
            archive_max_bytes: 1 << 30,
            compaction_interval: Duration::from_secs(30),
            max_file_bytes: None,
            reserve_bytes: 4 << 20,
            sync: true,
            overwrite_deleted: false,
            cache_max_bytes: None,
            cache_idle_time: Duration::from_secs(30),
            write_queue: 1_024,
            group_operations: 256,
            ring_events: 16_384,
            ring_bytes: 1 << 20,
            subscription_events: 16_384,
            subscription_bytes: 16 << 20,
            read_connections: 2,
        }
    }
}
