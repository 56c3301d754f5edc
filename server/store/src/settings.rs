//! What can be set of a store. Values only: files and environment are read elsewhere.

use std::path::PathBuf;
use std::time::Duration;

use crate::archive_rules::ArchiveRules;

/// Settings of a store in a SQLite file.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The database file; its folder is made with mode 0700 when it is missing, the file has mode 0600.
    pub path: PathBuf,
    /// How long past revisions are kept for watches and exact reads.
    pub history_retention: Duration,
    /// How long it is known, beyond history, where the revision stood when: [`crate::Store::revision_at`].
    pub marks_kept: Duration,
    /// How many bytes of superseded values are kept at most, whatever their age.
    pub history_max_bytes: u64,
    /// Of which resources past states are kept longer, and how long.
    pub archive: ArchiveRules,
    /// How many bytes these may take together; beyond that the oldest are forgotten, whatever their age.
    pub archive_max_bytes: u64,
    /// How often history is compacted and the file shrunk.
    pub compaction_interval: Duration,
    /// How large the database file may grow; writes beyond it fail as on a full disk. None: as the disk allows.
    pub max_file_bytes: Option<u64>,
    /// How much of the disk, and beyond `max_file_bytes`, is kept for deletions when nothing else can be written; at most
    /// a quarter of the disk.
    pub reserve_bytes: u64,
    /// Whether a write is answered only when it is on the disk. Otherwise it is when the system has it: a process that ends in any
    /// way loses nothing, a machine that goes down may lose the last writes or the whole file.
    pub sync: bool,
    /// Whether what is deleted is overwritten in the file.
    pub overwrite_deleted: bool,
    /// How many bytes of the current state are held in memory at most, as its objects are weighed; the resources that do not fit
    /// are read from the database. None: everything is held that was ever read or written, as it always is of etcd.
    pub cache_max_bytes: Option<u64>,
    /// How long a resource is unused before another one may take its room in memory, and how long one that finds none is read
    /// from the database before it looks again.
    pub cache_rest: Duration,
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
    /// How many connections load resources and serve exact reads and history. For watches that resume all but one of them read
    /// at a time, or the only one: however many resume, other reads have their turn.
    pub read_connections: u32,
}

impl Settings {
    /// The defaults, in this database file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            history_retention: Duration::from_secs(300),
            marks_kept: Duration::from_secs(2 * 3600),
            history_max_bytes: 256 << 20,
            archive: ArchiveRules::default(),
            archive_max_bytes: 1 << 30,
            compaction_interval: Duration::from_secs(30),
            max_file_bytes: None,
            reserve_bytes: 4 << 20,
            sync: true,
            overwrite_deleted: false,
            cache_max_bytes: None,
            cache_rest: Duration::from_secs(30),
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
