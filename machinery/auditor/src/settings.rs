//! What can be chosen: field names follow the flags.

use std::path::PathBuf;
use std::time::Duration;

use portico_kit::certs::FileError;
use portico_kit::rotating_file::Rotation;

use crate::policy_file;

/// `--audit-*`; nothing is recorded without a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditSettings {
    /// `--audit-policy-file`
    pub policy_file: Option<PathBuf>,
    /// `--audit-log-path` and what belongs to it.
    pub log: Option<AuditLogSettings>,
    /// `--audit-webhook-config-file` and what belongs to it.
    pub webhook: Option<AuditWebhookSettings>,
    /// `--audit-shutdown-timeout`
    pub shutdown_timeout: Duration,
    /// Keeps the latest events in memory ([`crate::Auditor::tail`]).
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
    /// Whether the policy can be used.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), FileError> {
        self.policy_file.as_deref().map_or(Ok(()), |file| policy_file::read(file).map(drop))
    }
}

/// The log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditLogSettings {
    /// `--audit-log-path`; `-` is standard output.
    pub path: PathBuf,
    /// `--audit-log-format`
    pub format: AuditFormat,
    /// `--audit-log-maxsize` and so on.
    pub rotation: Rotation,
    /// `--audit-log-mode`, `--audit-log-batch-*`, `--audit-log-truncate-*`
    pub delivery: AuditDelivery,
}

/// The webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditWebhookSettings {
    /// `--audit-webhook-config-file`
    pub config_file: PathBuf,
    /// `--audit-webhook-initial-backoff`
    pub initial_backoff: Duration,
    /// `--audit-webhook-mode`, `--audit-webhook-batch-*`, `--audit-webhook-truncate-*`
    pub delivery: AuditDelivery,
}

/// How events come to a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditDelivery {
    /// Whether requests wait.
    pub mode: AuditMode,
    /// In batch mode.
    pub batches: AuditBatches,
    /// What is too large; without, nothing is.
    pub truncation: Option<Truncation>,
}

/// `--audit-log-format`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditFormat {
    /// A JSON object in each line.
    #[default]
    Json,
    /// Text.
    Legacy,
}

/// Whether requests wait for their events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditMode {
    /// Events are buffered; those for which there is no room are dropped.
    Batch,
    /// Responses wait for their events.
    Blocking,
    /// And a request whose first event cannot be stored is refused.
    BlockingStrict,
}

/// How events are gathered in batch mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuditBatches {
    /// Events that may wait; further ones are dropped.
    pub buffer: usize,
    /// Events in one batch.
    pub max_size: usize,
    /// How long a batch that is not full waits.
    pub max_wait: Duration,
    /// Batches a second, and how many at once after a pause.
    pub throttle: Option<(f32, usize)>,
}

/// Which events are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Larger events lose their objects; those that are still larger are dropped.
    pub max_event_bytes: usize,
    /// Larger batches are split.
    pub max_batch_bytes: usize,
}
