//! The store: how much history, how large.

use std::time::Duration;

use clap::Args;

use super::values::duration;

/// Settings of the store.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Store (control service)"))]
pub(crate) struct StoreSettings {
    /// How long past states are kept for watches and exact reads.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    pub(crate) history_retention: Duration,
    /// How many bytes of past states are kept at most.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub(crate) history_max_bytes: u64,
    /// How long events are kept after their last write.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub(crate) event_ttl: Duration,
    /// How often history is compacted and the file shrunk.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) compaction_interval: Duration,
    /// How large the database file may grow, in bytes; 0 = as the disk allows.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) database_max_bytes: u64,
    /// Bytes of the disk, and beyond --database-max-bytes, that are kept for deletions when nothing else can be written;
    /// at most a quarter of the disk.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub(crate) database_reserve_bytes: u64,
    /// Writes that wait for the writer; further ones wait for room.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) write_queue: usize,
    /// Events, and ...
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    pub(crate) watch_queue_events: usize,
    /// ... bytes that may wait for one watch; beyond either it ends.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub(crate) watch_queue_bytes: usize,
    /// Bytes that made forms of objects (tables, metadata) may take together.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub(crate) form_cache_bytes: usize,
    /// Bytes that OpenAPI documents of kinds and custom resources, made when they are asked for, may take together.
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20)]
    pub(crate) openapi_cache_bytes: usize,
}
