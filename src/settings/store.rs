//! Flags of the store: history, caches, PostgreSQL, etcd.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use portico_server::{EtcdSettings, PostgresSettings};

use super::history_retention::HistoryRetention;
use super::values::duration;
use super::{SettingError, files};
use crate::etcd_flags::EtcdFlags;
use crate::postgres_flags;

const DATABASE: &str = "PostgreSQL";

/// Flags of the store.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Storage"))]
pub(crate) struct StoreSettings {
    /// Retention of past states, and longer retention for named resources (for example 5m,configmaps=720h).
    ///
    /// A plain duration applies to watches and reads at an exact resourceVersion, of all resources. RESOURCE=DURATION keeps past states of one
    /// resource for `portico history`; *=DURATION keeps past states of all other resources. With --etcd-servers only a
    /// plain duration is allowed.
    #[arg(long, value_name = "DURATION,RESOURCE=DURATION", default_value = "5m")]
    pub(crate) history_retention: HistoryRetention,
    /// Maximum bytes of past states kept for `portico history`; if exceeded, the oldest states are removed.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    pub(crate) history_archive_max_bytes: u64,
    /// Maximum bytes of past states kept for watches and for reads at an exact resourceVersion.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub(crate) history_max_bytes: u64,
    /// Maximum bytes of current objects cached in memory; 0 = no limit.
    ///
    /// Applies to SQLite and PostgreSQL. Resources that do not fit are read from the database.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) cache_max_bytes: u64,
    /// Time to keep Events after their last write.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub(crate) event_ttl: Duration,
    /// Interval at which history is compacted and the database file is shrunk.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) compaction_interval: Duration,
    /// Acknowledge writes without waiting for the disk.
    ///
    /// No data is lost if the process ends; the last writes or the whole database may be lost if the machine crashes.
    /// The default is `true` with --ephemeral.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) unsafe_no_fsync: bool,
    /// Maximum size of the database file in bytes; 0 = limited by the disk.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) database_max_bytes: u64,
    /// Bytes kept free so that objects can still be deleted when the disk or --database-max-bytes is full.
    ///
    /// At most a quarter of the disk is kept free.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub(crate) database_reserve_bytes: u64,
    /// Maximum size of an object's JSON in bytes, at most 3145728.
    ///
    /// A larger object is rejected with the error that kube-apiserver returns for etcd's limit, which is 1572864 by
    /// default.
    #[arg(long, value_name = "BYTES", value_parser = RangedU64ValueParser::<usize>::new().range(1..=3 << 20), default_value_t = 3 << 20)]
    pub(crate) max_object_bytes: usize,
    /// Maximum number of queued writes; further writes wait for space in the queue.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) write_queue: usize,
    /// Maximum number of events queued for one watch; if exceeded, the watch is closed.
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    pub(crate) watch_queue_events: usize,
    /// Maximum bytes of events queued for one watch; if exceeded, the watch is closed.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub(crate) watch_queue_bytes: usize,
    /// Maximum bytes of cached forms of objects, such as table rows, protobuf messages and watch events.
    ///
    /// Other cached forms are metadata, JSON in versions other than the storage version, and results of conversion webhooks.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub(crate) form_cache_bytes: usize,
    /// Maximum bytes of cached OpenAPI documents for built-in kinds and custom resources.
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20)]
    pub(crate) openapi_cache_bytes: usize,
    /// PostgreSQL database to use instead of a file in the data directory.
    ///
    /// Several control services can share one database. The form is
    /// postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE; sslcert and sslkey are supported, and
    /// HOST can be the directory of a Unix socket, with %2F for /. Without sslmode, TLS is used if the server offers it,
    /// and a warning is logged if a password is sent to another host without TLS.
    #[arg(long, help_heading = DATABASE, value_name = "URL", value_parser = postgres_flags::url, conflicts_with = "etcd_servers")]
    pub(crate) database_url: Option<PostgresSettings>,
    /// File with the password for --database-url, read at start.
    ///
    /// Requires --database-url.
    #[arg(long, help_heading = DATABASE, value_name = "FILE")]
    pub(crate) database_password_file: Option<PathBuf>,
    /// Maximum number of PostgreSQL connections for reads (2 or more).
    ///
    /// Three more connections write, poll the head of the log and receive notifications.
    #[arg(long, help_heading = DATABASE, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) database_read_connections: u32,
    /// Support a connection pooler in transaction mode, such as PgBouncer, in front of PostgreSQL.
    ///
    /// Statements are not prepared, and commits of other control services are found by polling.
    #[arg(long, help_heading = DATABASE, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) database_transaction_pooler: bool,
    /// Time to wait for PostgreSQL or etcd at start.
    #[arg(long, help_heading = DATABASE, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) database_connect_timeout: Duration,
    /// Timeout of a PostgreSQL statement or etcd request.
    #[arg(long, help_heading = DATABASE, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) database_statement_timeout: Duration,
    /// Interval at which PostgreSQL is polled for commits of other control services.
    ///
    /// Notifications normally arrive earlier.
    #[arg(long, help_heading = DATABASE, value_name = "DURATION", value_parser = duration, default_value = "100ms")]
    pub(crate) database_poll_interval: Duration,
    #[command(flatten, next_help_heading = "etcd")]
    pub(crate) etcd: EtcdFlags,
    /// Interval at which this server compacts etcd's history; 0 = never.
    ///
    /// Servers that share an etcd take turns.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    pub(crate) etcd_compaction_interval: Duration,
    /// Time in seconds for which an etcd lease is reused for further Events.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) lease_reuse_duration_seconds: u64,
}

impl StoreSettings {
    /// Returns true if several control services can share the store.
    pub(crate) fn is_shared(&self) -> bool {
        self.database_url.is_some() || !self.etcd.etcd_servers.is_empty()
    }

    /// Returns a description of the store, or `None` for a SQLite file.
    pub(crate) fn describe_location(&self) -> Option<String> {
        let etcd = (!self.etcd.etcd_servers.is_empty())
            .then(|| format!("etcd at {}", self.etcd.etcd_servers.join(", ")));
        etcd.or_else(|| self.database_url.as_ref().map(|_| "PostgreSQL (--database-url)".to_owned()))
    }

    /// Returns the settings of etcd, if etcd is the store.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or a flag does not apply to etcd.
    pub(crate) fn etcd(&self) -> Result<Option<EtcdSettings>, SettingError> {
        let read = |setting, path: &Path| files::read(setting, path);
        self.etcd.check().map_err(|reason| SettingError::new("--etcd-servers", reason))?;
        let Some(mut settings) = self.etcd.settings(read)? else { return Ok(None) };
        if !self.history_retention.archive.is_empty() {
            let message =
                "retention per resource is not supported with --etcd-servers; pass a duration such as 5m";
            return Err(SettingError::new("--history-retention", message));
        }
        settings.connect_timeout = self.database_connect_timeout;
        settings.request_timeout = self.database_statement_timeout;
        settings.compaction_interval = self.etcd_compaction_interval;
        settings.lease_reuse = Duration::from_secs(self.lease_reuse_duration_seconds);
        Ok(Some(settings))
    }

    /// Returns the settings of PostgreSQL, if PostgreSQL is the store.
    ///
    /// # Errors
    /// Returns an error if the password file cannot be read.
    pub(crate) fn postgres(&self) -> Result<Option<PostgresSettings>, SettingError> {
        let Some(mut settings) = self.database_url.clone() else { return Ok(None) };
        settings.read_connections = self.database_read_connections;
        settings.transaction_pooler = self.database_transaction_pooler;
        settings.connect_timeout = self.database_connect_timeout;
        settings.statement_timeout = self.database_statement_timeout;
        settings.poll_interval = self.database_poll_interval;
        let Some(path) = &self.database_password_file else { return Ok(Some(settings)) };
        const SETTING: &str = "--database-password-file";
        let with_password = postgres_flags::with_password(settings, files::read(SETTING, path)?);
        let settings = with_password
            .map_err(|reason| SettingError::new(SETTING, format!("{}: {reason}", path.display())))?;
        Ok(Some(settings))
    }
}
