//! Flags of audit. All flags except `--audit-shutdown-timeout` are flags of kube-apiserver.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use portico_auditor::{
    AuditBatchSettings, AuditDelivery, AuditFormat, AuditLogSettings, AuditMode, AuditSettings,
    AuditWebhookSettings, TruncationLimits,
};
use portico_kit::rotating_file::Rotation;

use super::SettingError;
use super::values::duration;

/// Only supported API version of audit events.
const VERSION: &str = "audit.k8s.io/v1";
const MODES: [(&str, AuditMode); 3] = [
    ("batch", AuditMode::Batch),
    ("blocking", AuditMode::Blocking),
    ("blocking-strict", AuditMode::BlockingStrict),
];
const FORMATS: [(&str, AuditFormat); 2] = [("legacy", AuditFormat::Legacy), ("json", AuditFormat::Json)];
const MEGABYTE: u64 = 1024 * 1024;

/// Flags of audit.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Audit"))]
pub(crate) struct Audit {
    /// Audit policy (audit.k8s.io/v1) that selects the requests to record.
    ///
    /// The file is reloaded on SIGHUP. Without a policy, no requests are recorded.
    #[arg(long, value_name = "FILE")]
    audit_policy_file: Option<PathBuf>,
    /// Time that shutdown waits for the final events of requests in flight.
    ///
    /// Later events are lost, and the loss is logged.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    audit_shutdown_timeout: Duration,
    /// File to which audit events are written; "-" = standard output.
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// Format of the audit log: json (one event per line) or legacy (text).
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    audit_log_format: String,
    /// Maximum size of the audit log in megabytes before it is rotated; 0 = no rotation.
    #[arg(long, value_name = "MB", default_value_t = 100, allow_negative_numbers = true)]
    audit_log_maxsize: i64,
    /// Maximum number of days to keep rotated audit logs; 0 = no limit.
    #[arg(long, value_name = "DAYS", default_value_t = 366, allow_negative_numbers = true)]
    audit_log_maxage: i64,
    /// Maximum number of rotated audit logs to keep; 0 = no limit.
    #[arg(long, value_name = "N", default_value_t = 100, allow_negative_numbers = true)]
    audit_log_maxbackup: i64,
    /// Compress rotated audit logs with gzip.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    audit_log_compress: bool,
    /// API version of events in the audit log.
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    audit_log_version: String,
    /// Delivery mode of the audit log: batch, blocking or blocking-strict.
    ///
    /// With batch, events are buffered and requests do not wait. With blocking, responses wait until their events are
    /// delivered. With blocking-strict, a request whose first event cannot be delivered is rejected.
    #[arg(long, value_name = "MODE", default_value = "blocking")]
    audit_log_mode: String,
    /// Maximum number of events buffered for the audit log.
    ///
    /// Applies to batch mode; events that exceed the buffer are dropped.
    #[arg(long, value_name = "N", default_value_t = 10_000, allow_negative_numbers = true)]
    audit_log_batch_buffer_size: i64,
    /// Maximum number of events in a batch written to the audit log, in batch mode.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    audit_log_batch_max_size: i64,
    /// Maximum time before a partial batch is written to the audit log, in batch mode.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    audit_log_batch_max_wait: Duration,
    /// Limit the rate of batches written to the audit log, in batch mode.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    audit_log_batch_throttle_enable: bool,
    /// Maximum average number of batches per second written to the audit log, if throttling is enabled.
    #[arg(long, value_name = "N", default_value_t = 0.0, allow_negative_numbers = true)]
    audit_log_batch_throttle_qps: f32,
    /// Maximum number of batches written to the audit log at once after an idle period, if throttling is enabled.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    audit_log_batch_throttle_burst: i64,
    /// Truncate events and batches that exceed the size limits of the audit log.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    audit_log_truncate_enabled: bool,
    /// Maximum size of an event in the audit log, in bytes.
    ///
    /// The request and response objects are removed from a larger event; if the event is still too large, it is dropped.
    /// Requires --audit-log-truncate-enabled.
    #[arg(long, value_name = "BYTES", default_value_t = 102_400, allow_negative_numbers = true)]
    audit_log_truncate_max_event_size: i64,
    /// Maximum size of a batch in the audit log, in bytes.
    ///
    /// Larger batches are split. Requires --audit-log-truncate-enabled.
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760, allow_negative_numbers = true)]
    audit_log_truncate_max_batch_size: i64,
    /// Kubeconfig file whose current context names the webhook that receives audit events.
    #[arg(long, value_name = "FILE")]
    audit_webhook_config_file: Option<PathBuf>,
    /// Time before the first retry of a batch that could not be sent.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s", alias = "audit-webhook-batch-initial-backoff")]
    audit_webhook_initial_backoff: Duration,
    /// API version of events sent to the webhook.
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    audit_webhook_version: String,
    /// Delivery mode of the webhook: batch, blocking or blocking-strict.
    ///
    /// With batch, events are buffered and requests do not wait. With blocking, responses wait until their events are
    /// delivered. With blocking-strict, a request whose first event cannot be delivered is rejected.
    #[arg(long, value_name = "MODE", default_value = "batch")]
    audit_webhook_mode: String,
    /// Maximum number of events buffered for the webhook.
    ///
    /// Applies to batch mode; events that exceed the buffer are dropped.
    #[arg(long, value_name = "N", default_value_t = 10_000, allow_negative_numbers = true)]
    audit_webhook_batch_buffer_size: i64,
    /// Maximum number of events in a batch sent to the webhook, in batch mode.
    #[arg(long, value_name = "N", default_value_t = 400, allow_negative_numbers = true)]
    audit_webhook_batch_max_size: i64,
    /// Maximum time before a partial batch is sent to the webhook, in batch mode.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    audit_webhook_batch_max_wait: Duration,
    /// Limit the rate of batches sent to the webhook, in batch mode.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    audit_webhook_batch_throttle_enable: bool,
    /// Maximum average number of batches per second sent to the webhook, if throttling is enabled.
    #[arg(long, value_name = "N", default_value_t = 10.0, allow_negative_numbers = true)]
    audit_webhook_batch_throttle_qps: f32,
    /// Maximum number of batches sent to the webhook at once after an idle period, if throttling is enabled.
    #[arg(long, value_name = "N", default_value_t = 15, allow_negative_numbers = true)]
    audit_webhook_batch_throttle_burst: i64,
    /// Truncate events and batches that exceed the size limits of the webhook.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    audit_webhook_truncate_enabled: bool,
    /// Maximum size of an event sent to the webhook, in bytes.
    ///
    /// The request and response objects are removed from a larger event; if the event is still too large, it is dropped.
    /// Requires --audit-webhook-truncate-enabled.
    #[arg(long, value_name = "BYTES", default_value_t = 102_400, allow_negative_numbers = true)]
    audit_webhook_truncate_max_event_size: i64,
    /// Maximum size of a batch sent to the webhook, in bytes.
    ///
    /// Larger batches are split. Requires --audit-webhook-truncate-enabled.
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760, allow_negative_numbers = true)]
    audit_webhook_truncate_max_batch_size: i64,
}

/// Flags that the log and the webhook have in common.
struct Flags<'a> {
    /// `log` or `webhook`.
    plugin: &'static str,
    version: &'a str,
    mode: &'a str,
    buffer: i64,
    max_size: i64,
    max_wait: Duration,
    throttle: Option<(f32, i64)>,
    truncate: bool,
    max_event: i64,
    max_batch: i64,
}

impl Audit {
    /// Returns the settings of the auditor.
    ///
    /// # Errors
    /// Returns the errors of upstream's `AuditOptions.Validate`.
    pub(crate) fn settings(&self) -> Result<AuditSettings, SettingError> {
        Ok(AuditSettings {
            policy_file: self.audit_policy_file.clone(),
            log: self.audit_log_path.clone().map(|path| self.log(path)).transpose()?,
            webhook: self.audit_webhook_config_file.clone().map(|file| self.webhook(file)).transpose()?,
            shutdown_timeout: self.audit_shutdown_timeout,
            ..AuditSettings::default()
        })
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        self.settings()?.check().map_err(|error| SettingError::new("--audit-policy-file", error))
    }

    fn log(&self, path: PathBuf) -> Result<AuditLogSettings, SettingError> {
        let delivery = self.log_flags().delivery()?;
        let format = FORMATS.iter().find(|(name, _)| *name == self.audit_log_format);
        let Some((_, format)) = format else {
            let invalid = &self.audit_log_format;
            let words = format!("invalid audit log format {invalid}, allowed formats are \"legacy,json\"");
            return Err(SettingError::new("--audit-log-format", words));
        };
        let max_age = not_negative("--audit-log-maxage", self.audit_log_maxage)?;
        let max_backups = not_negative("--audit-log-maxbackup", self.audit_log_maxbackup)?;
        let max_size = not_negative("--audit-log-maxsize", self.audit_log_maxsize)?;
        let rotation = Rotation {
            max_bytes: max_size.saturating_mul(MEGABYTE),
            max_age_days: u32::try_from(max_age).unwrap_or(u32::MAX),
            max_backups: usize::try_from(max_backups).unwrap_or(usize::MAX),
            compress: self.audit_log_compress,
        };
        Ok(AuditLogSettings { path, format: *format, rotation, delivery })
    }

    fn webhook(&self, config_file: PathBuf) -> Result<AuditWebhookSettings, SettingError> {
        super::files::read("--audit-webhook-config-file", &config_file)?;
        let initial_backoff = self.audit_webhook_initial_backoff;
        Ok(AuditWebhookSettings { config_file, initial_backoff, delivery: self.webhook_flags().delivery()? })
    }

    fn log_flags(&self) -> Flags<'_> {
        let throttle = (self.audit_log_batch_throttle_qps, self.audit_log_batch_throttle_burst);
        Flags {
            plugin: "log",
            version: &self.audit_log_version,
            mode: &self.audit_log_mode,
            buffer: self.audit_log_batch_buffer_size,
            max_size: self.audit_log_batch_max_size,
            max_wait: self.audit_log_batch_max_wait,
            throttle: self.audit_log_batch_throttle_enable.then_some(throttle),
            truncate: self.audit_log_truncate_enabled,
            max_event: self.audit_log_truncate_max_event_size,
            max_batch: self.audit_log_truncate_max_batch_size,
        }
    }

    fn webhook_flags(&self) -> Flags<'_> {
        let throttle = (self.audit_webhook_batch_throttle_qps, self.audit_webhook_batch_throttle_burst);
        Flags {
            plugin: "webhook",
            version: &self.audit_webhook_version,
            mode: &self.audit_webhook_mode,
            buffer: self.audit_webhook_batch_buffer_size,
            max_size: self.audit_webhook_batch_max_size,
            max_wait: self.audit_webhook_batch_max_wait,
            throttle: self.audit_webhook_batch_throttle_enable.then_some(throttle),
            truncate: self.audit_webhook_truncate_enabled,
            max_event: self.audit_webhook_truncate_max_event_size,
            max_batch: self.audit_webhook_truncate_max_batch_size,
        }
    }
}

impl Flags<'_> {
    fn delivery(&self) -> Result<AuditDelivery, SettingError> {
        let Some((_, mode)) = MODES.iter().find(|(name, _)| *name == self.mode) else {
            let Self { plugin, mode, .. } = self;
            let words = format!(
                "invalid audit {plugin} mode {mode}, allowed modes are \"batch,blocking,blocking-strict\""
            );
            return Err(self.flag_error("mode", words));
        };
        let batches = match mode {
            AuditMode::Batch => self.batches()?,
            // As upstream, flags of batches are validated only in batch mode.
            _ => AuditBatchSettings { buffer: 1, max_size: 1, max_wait: Duration::ZERO, throttle: None },
        };
        let truncation = self.truncation()?;
        if self.version != VERSION {
            let words = format!("invalid group version, allowed versions are [{VERSION:?}]");
            return Err(self.flag_error("version", words));
        }
        Ok(AuditDelivery { mode: *mode, batches, truncation })
    }

    fn batches(&self) -> Result<AuditBatchSettings, SettingError> {
        let plugin = self.plugin;
        let positive = |flag, name, value: i64| match usize::try_from(value) {
            Ok(value) if value > 0 => Ok(value),
            _ => {
                let words = format!("invalid audit batch {plugin} {name} {value}, must be a positive number");
                Err(self.flag_error(flag, words))
            }
        };
        let buffer = positive("batch-buffer-size", "buffer size", self.buffer)?;
        let max_size = positive("batch-max-size", "max batch size", self.max_size)?;
        let throttle = match self.throttle {
            Some((qps, _)) if qps.is_nan() || qps <= 0.0 => {
                let words =
                    format!("invalid audit batch {plugin} throttle QPS {qps}, must be a positive number");
                return Err(self.flag_error("batch-throttle-qps", words));
            }
            Some((qps, burst)) => Some((qps, positive("batch-throttle-burst", "throttle burst", burst)?)),
            None => None,
        };
        // Tokio's channels cannot be larger.
        let buffer = buffer.min(tokio::sync::Semaphore::MAX_PERMITS);
        Ok(AuditBatchSettings { buffer, max_size, max_wait: self.max_wait, throttle })
    }

    fn truncation(&self) -> Result<Option<TruncationLimits>, SettingError> {
        let Self { plugin, max_event, max_batch, .. } = self;
        if *max_event <= 0 {
            let words = format!(
                "invalid audit truncate {plugin} max event size {max_event}, must be a positive number"
            );
            return Err(self.flag_error("truncate-max-event-size", words));
        }
        if max_batch < max_event {
            let words = format!(
                "invalid audit truncate {plugin} max batch size {max_batch}, must be greater than max event size ({max_event})"
            );
            return Err(self.flag_error("truncate-max-batch-size", words));
        }
        let bytes = |value: i64| usize::try_from(value).unwrap_or(usize::MAX);
        let truncation =
            TruncationLimits { max_event_bytes: bytes(*max_event), max_batch_bytes: bytes(*max_batch) };
        Ok(self.truncate.then_some(truncation))
    }

    fn flag_error(&self, flag: &str, words: String) -> SettingError {
        SettingError::new(&format!("--audit-{}-{flag}", self.plugin), words)
    }
}

fn not_negative(setting: &str, value: i64) -> Result<u64, SettingError> {
    u64::try_from(value)
        .map_err(|_| SettingError::new(setting, format!("{setting} {value} can't be a negative number")))
}
