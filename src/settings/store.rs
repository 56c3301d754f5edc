//! The store: how much history, how large.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use portico_server::{EtcdSettings, PostgresSettings};

use super::history_retention::HistoryRetention;
use super::values::duration;
use super::{SettingError, files};
use crate::etcd_flags::EtcdFlags;

/// Settings of the store.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Store (control service)"))]
pub(crate) struct StoreSettings {
    /// How long past states are kept for watches and exact reads, and, of which resources, longer for `portico history`:
    /// `5m,configmaps=720h,deployments.apps=168h,*=24h`.
    #[arg(long, value_name = "DURATION,RESOURCE=DURATION", default_value = "5m")]
    pub(crate) history_retention: HistoryRetention,
    /// How many bytes of past states are kept at most for `portico history`; beyond that the oldest are forgotten.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    pub(crate) history_archive_max_bytes: u64,
    /// How many bytes of past states are kept at most.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub(crate) history_max_bytes: u64,
    /// How many bytes of the current state are held in memory at most, on SQLite and PostgreSQL; resources that do not fit are
    /// read from the database. 0 = everything that was ever read or written.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) cache_max_bytes: u64,
    /// How long events are kept after their last write.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub(crate) event_ttl: Duration,
    /// How often history is compacted and the file shrunk.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) compaction_interval: Duration,
    /// Keep everything in this PostgreSQL database, which several control services may share, instead of a file in the data
    /// folder: `postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE`.
    #[arg(long, value_name = "URL", value_parser = postgres, conflicts_with = "etcd_servers")]
    pub(crate) database_url: Option<PostgresSettings>,
    /// The password for --database-url, from a file; read at the start.
    #[arg(long, value_name = "FILE", requires = "database_url")]
    pub(crate) database_password_file: Option<PathBuf>,
    /// Connections to PostgreSQL that read, at most; three more write, ask how far the database is, and hear of others' writes.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) database_read_connections: u32,
    /// Between here and PostgreSQL a pooler hands connections on after each transaction (PgBouncer in transaction mode).
    #[arg(long)]
    pub(crate) database_transaction_pooler: bool,
    /// How long PostgreSQL or etcd is waited for at the start.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) database_connect_timeout: Duration,
    /// How long PostgreSQL may take for one statement, and etcd for one request, before it is given up.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) database_statement_timeout: Duration,
    /// How often PostgreSQL is asked for writes of others, besides being told of them.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "100ms")]
    pub(crate) database_poll_interval: Duration,
    #[command(flatten)]
    pub(crate) etcd: EtcdFlags,
    /// How often etcd's history is compacted, in turns with all servers of it; 0 = by others.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    pub(crate) etcd_compaction_interval: Duration,
    /// For how long a lease of etcd is given to further events.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) lease_reuse_duration_seconds: u64,
    /// Answer writes, and go on after writing certificates and the like, without waiting for the disk, as etcd's flag of this name: if the
    /// process ends in any way nothing is lost; if the machine goes down, the last writes or the whole file may be.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) unsafe_no_fsync: bool,
    /// How large the database file may grow, in bytes; 0 = as the disk allows.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) database_max_bytes: u64,
    /// Bytes of the disk, and beyond --database-max-bytes, that are kept for deletions when nothing else can be written;
    /// at most a quarter of the disk.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub(crate) database_reserve_bytes: u64,
    /// The largest JSON of an object that a user writes, in bytes, up to 3145728. A larger object is refused as kube-apiserver
    /// passes on etcd's refusal; etcd's limit is 1572864 by default.
    #[arg(long, value_name = "BYTES", value_parser = RangedU64ValueParser::<usize>::new().range(1..=3 << 20), default_value_t = 3 << 20)]
    pub(crate) max_object_bytes: usize,
    /// Writes that wait for the writer; further ones wait for room.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) write_queue: usize,
    /// Events, and ...
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    pub(crate) watch_queue_events: usize,
    /// ... bytes that may wait for one watch; beyond either it ends.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub(crate) watch_queue_bytes: usize,
    /// Bytes that made forms of objects (tables, metadata, conversions by webhooks) may take together.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub(crate) form_cache_bytes: usize,
    /// Bytes that OpenAPI documents of kinds and custom resources, made when they are asked for, may take together.
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20)]
    pub(crate) openapi_cache_bytes: usize,
}

fn postgres(url: &str) -> Result<PostgresSettings, String> {
    PostgresSettings::new(url).map_err(|error| error.to_string())
}

impl StoreSettings {
    /// Whether several control services may share the store.
    pub(crate) fn is_shared(&self) -> bool {
        self.database_url.is_some() || !self.etcd.etcd_servers.is_empty()
    }

    /// What the store is in, unless it is a file.
    pub(crate) fn place(&self) -> Option<String> {
        let etcd = (!self.etcd.etcd_servers.is_empty())
            .then(|| format!("etcd at {}", self.etcd.etcd_servers.join(", ")));
        etcd.or_else(|| self.database_url.as_ref().map(|_| "PostgreSQL (--database-url)".to_owned()))
    }

    /// The etcd, if there is to be one.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn etcd(&self) -> Result<Option<EtcdSettings>, SettingError> {
        let read = |setting, path: &Path| files::read(setting, path);
        self.etcd.check().map_err(|why| SettingError::new("--etcd-servers", why))?;
        let Some(mut settings) = self.etcd.settings(read)? else { return Ok(None) };
        if !self.history_retention.archive.is_empty() {
            let why = "etcd keeps the history of all resources alike: only a duration may be given";
            return Err(SettingError::new("--history-retention", why));
        }
        settings.connect_timeout = self.database_connect_timeout;
        settings.request_timeout = self.database_statement_timeout;
        settings.compaction_interval = self.etcd_compaction_interval;
        settings.lease_reuse = Duration::from_secs(self.lease_reuse_duration_seconds);
        Ok(Some(settings))
    }

    /// The PostgreSQL database, if there is to be one.
    ///
    /// # Errors
    /// When the file of its password cannot be read.
    pub(crate) fn postgres(&self) -> Result<Option<PostgresSettings>, SettingError> {
        let Some(mut settings) = self.database_url.clone() else { return Ok(None) };
        settings.read_connections = self.database_read_connections;
        settings.transaction_pooler = self.database_transaction_pooler;
        settings.connect_timeout = self.database_connect_timeout;
        settings.statement_timeout = self.database_statement_timeout;
        settings.poll_interval = self.database_poll_interval;
        let Some(path) = &self.database_password_file else { return Ok(Some(settings)) };
        const SETTING: &str = "--database-password-file";
        let password = String::from_utf8(files::read(SETTING, path)?);
        let password = password.map_err(|_| SettingError::new(SETTING, "it is not UTF-8"))?;
        Ok(Some(settings.password(password.trim_end_matches(['\r', '\n']))))
    }
}
