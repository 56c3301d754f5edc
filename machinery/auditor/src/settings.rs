//! Settings of audit. Field names follow the flags.

use std::path::PathBuf;
use std::time::Duration;

use portico_kit::certs::FileError;
use portico_kit::rotating_file::Rotation;

use crate::policy_file;

/// `--audit-*`. Without a policy, audit is off.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditSettings {
    /// `--audit-policy-file`
    pub policy_file: Option<PathBuf>,
    /// `--audit-log-*`
    pub log: Option<AuditLogSettings>,
    /// `--audit-webhook-*`
    pub webhook: Option<AuditWebhookSettings>,
    /// `--audit-shutdown-timeout`
    pub shutdown_timeout: Duration,
    /// True to keep the latest events in memory ([`crate::Auditor::tail`]).
    pub tail: bool,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            policy_file: None,
            log: None,
            webhook: None,
            shutdown_timeout: Duration::from_secs(5),
            tail: false,
        }
    }
}

impl AuditSettings {
    /// Checks that the policy can be used.
    ///
    /// # Errors
    /// The policy cannot be read or is invalid.
    pub fn check(&self) -> Result<(), FileError> {
        self.policy_file.as_deref().map_or(Ok(()), |file| policy_file::read(file).map(drop))
    }
}

/// Settings of the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditLogSettings {
    /// `--audit-log-path`; `-` is standard output.
    pub path: PathBuf,
    /// `--audit-log-format`
    pub format: AuditFormat,
    /// `--audit-log-maxsize`, `--audit-log-maxage`, `--audit-log-maxbackup`, `--audit-log-compress`
    pub rotation: Rotation,
    /// `--audit-log-mode`, `--audit-log-batch-*`, `--audit-log-truncate-*`
    pub delivery: AuditDelivery,
}

/// Settings of the audit webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditWebhookSettings {
    /// `--audit-webhook-config-file`
    pub config_file: PathBuf,
    /// `--audit-webhook-initial-backoff`
    pub initial_backoff: Duration,
    /// `--audit-webhook-mode`, `--audit-webhook-batch-*`, `--audit-webhook-truncate-*`
    pub delivery: AuditDelivery,
}

/// Delivery of events to a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditDelivery {
    /// Waiting behavior of requests.
    pub mode: AuditMode,
    /// Settings of batch mode.
    pub batches: AuditBatchSettings,
    /// Maximum sizes; `None` for no limit.
    pub truncation: Option<TruncationLimits>,
}

/// `--audit-log-format`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditFormat {
    /// A JSON object in each line.
    #[default]
    Json,
    /// One line of text per event.
    Legacy,
}

/// Waiting behavior of requests: `--audit-log-mode`, `--audit-webhook-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditMode {
    /// Events are buffered; those that do not fit are dropped.
    Batch,
    /// Responses wait for their events.
    Blocking,
    /// Responses wait for their events, and a request whose first event cannot be stored is refused.
    BlockingStrict,
}

/// Settings of batch mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuditBatchSettings {
    /// Maximum number of buffered events; further events are dropped.
    pub buffer: usize,
    /// Maximum number of events in a batch.
    pub max_size: usize,
    /// Maximum time before a batch that is not full is sent.
    pub max_wait: Duration,
    /// Maximum batches per second, and burst size.
    pub throttle: Option<(f32, usize)>,
}

/// Maximum sizes of events and batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncationLimits {
    /// Larger events lose their objects; those that are still larger are dropped.
    pub max_event_bytes: usize,
    /// Larger batches are split.
    pub max_batch_bytes: usize,
}
