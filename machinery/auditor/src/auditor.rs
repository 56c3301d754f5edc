//! Evaluates the audit policy and sends events to the backends.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portico_audit::{AuditConfig, Event, Policy, Stage};
use portico_kit::certs::{FileError, FileWatch};
use portico_kit::metrics::Registry;
use portico_kit::recent_lines::RecentLines;
use portico_kit::tasks::TaskSet;
use portico_machinery::{RequestInfo, UserInfo};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::backend::Backend;
use crate::deliveries::{Deliveries, EncodedEvent};
use crate::error::AuditError;
use crate::metrics::AuditMetrics;
use crate::policy_file;
use crate::settings::AuditSettings;

/// Time at shutdown to send buffered events to the audit webhook.
///
/// Limit (Audit): the rest is lost and logged.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of recent audit events of programs, and of browsers.
///
/// Limit (Console): the oldest events are removed; a slow reader learns how many it missed.
const TAIL_EVENTS: usize = 500;
/// Maximum size of the recent audit events of programs, and of browsers, in bytes.
///
/// Limit (Console, bytes): the oldest events are removed.
const TAIL_BYTES: usize = 1 << 20;
/// Start of the user agent of all browsers.
const BROWSER_PREFIX: &str = "Mozilla/";

/// Latest audit events, in memory. Requests of browsers are separate: the console sends many, which would
/// displace the other events.
#[derive(Clone)]
pub struct AuditTail {
    /// Events of requests by programs.
    pub programs: Arc<RecentLines>,
    /// Events of requests by browsers, including the console.
    pub browsers: Arc<RecentLines>,
}

impl AuditTail {
    fn new() -> Self {
        let recent = || Arc::new(RecentLines::new(TAIL_EVENTS, TAIL_BYTES));
        Self { programs: recent(), browsers: recent() }
    }

    fn push(&self, event: &Event, json: Bytes) {
        let is_browser = event.user_agent.starts_with(BROWSER_PREFIX);
        if is_browser { &self.browsers } else { &self.programs }.push(json);
    }
}

/// Audit policy and backends of a server.
pub struct Auditor {
    policy: FileWatch<Policy>,
    deliveries: Deliveries,
    tail: Option<AuditTail>,
    metrics: AuditMetrics,
    /// Requests whose last event has not been processed.
    open_requests: TaskTracker,
    /// Time that [`Auditor::shutdown`] waits for open requests.
    shutdown_timeout: Duration,
    /// Background tasks of the backends; they end after everything else.
    tasks: TaskSet,
    /// Connections of the webhook, which the background tasks use until they end.
    connections: TaskSet,
}

impl Auditor {
    /// Reads the policy, opens the log and reads the configuration of the webhook. Returns `None` without a policy or without a
    /// backend. Must be called in the runtime that ends last.
    ///
    /// # Errors
    /// [`AuditError`] names the setting.
    pub fn start(settings: &AuditSettings, registry: &Registry) -> Result<Option<Arc<Self>>, AuditError> {
        let metrics = AuditMetrics::new(registry);
        let Some(policy) = &settings.policy_file else {
            if settings.log.is_some() || settings.webhook.is_some() {
                tracing::info!("no audit policy file provided, no events will be recorded");
            }
            return Ok(None);
        };
        let policy = policy_file::read(policy)?;
        policy_file::log_warnings(&policy.current());
        let (mut backends, tasks, connections) = (Vec::new(), TaskSet::new(), TaskSet::new());
        if let Some(log) = &settings.log {
            backends.push(Backend::log(log, &metrics, &tasks)?);
        }
        if let Some(webhook) = &settings.webhook {
            backends.push(Backend::webhook(webhook, &metrics, &tasks, &connections)?);
        }
        if backends.is_empty() {
            return Ok(None);
        }
        let shutdown_timeout = settings.shutdown_timeout;
        Ok(Some(Arc::new(Self {
            policy,
            deliveries: Deliveries::new(backends, tasks.clone()),
            tail: settings.tail.then(AuditTail::new),
            metrics,
            open_requests: TaskTracker::new(),
            shutdown_timeout,
            tasks,
            connections,
        })))
    }

    /// Returns the latest events, if [`AuditSettings::tail`] is set.
    pub fn tail(&self) -> Option<AuditTail> {
        self.tail.clone()
    }

    /// Returns the audit level and options that the policy sets for a request.
    pub fn evaluate(&self, user: Option<&UserInfo>, request: &RequestInfo) -> AuditConfig {
        let config = self.policy.current().evaluate(user, request);
        self.metrics.count_level(config.level);
        config
    }

    /// Encodes an event for all backends, and adds it to the tail. Backends with the same format share the bytes.
    pub(crate) fn encode(&self, event: &Event) -> EncodedEvent {
        self.metrics.events.inc();
        let mut json = event.to_json();
        json.push(b'\n');
        let json = Bytes::from(json);
        if let Some(tail) = &self.tail {
            tail.push(event, json.clone());
        }
        self.deliveries.encode(event, &json)
    }

    /// True if the first event of a request may be written together with the next one: no backend makes the request wait for it,
    /// and all backends write lines.
    pub(crate) fn can_defer(&self) -> bool {
        self.deliveries.can_defer()
    }

    /// Delivers an event to all backends and waits as their modes say; false if a strict one failed.
    pub(crate) async fn process(&self, encoded: EncodedEvent, stage: Stage) -> bool {
        self.deliveries.process(encoded, stage).await
    }

    /// Delivers an event in the background.
    pub(crate) fn process_in_background(&self, encoded: EncodedEvent, stage: Stage) {
        self.deliveries.process_in_background(encoded, stage);
    }

    /// Registers a request. [`Auditor::shutdown`] waits until the token is dropped.
    pub(crate) fn track_request(&self) -> TaskTrackerToken {
        self.open_requests.token()
    }

    /// Counts a request that was refused because its event was not stored.
    pub(crate) fn count_rejected(&self) {
        self.metrics.rejected.inc();
    }

    /// Reads the policy again. If the new one cannot be used, returns the error and keeps the old one.
    pub async fn reload(&self) -> Option<FileError> {
        match self.policy.reload().await {
            Ok(changed) => {
                if changed {
                    policy_file::log_warnings(&self.policy.current());
                }
                None
            }
            Err(error) => Some(error),
        }
    }

    /// Delivers all accepted events, and accepts no more.
    pub async fn shutdown(&self) {
        // The handler of a stream may notice the end of its connection slightly after the connection itself.
        self.open_requests.close();
        if tokio::time::timeout(self.shutdown_timeout, self.open_requests.wait()).await.is_err() {
            tracing::warn!(
                requests = self.open_requests.len(),
                "requests did not end in time, their last audit events are lost"
            );
        }
        let unsent = self.tasks.shutdown(FLUSH_TIMEOUT).await;
        if !unsent.is_empty() {
            tracing::error!(deliveries = unsent.len(), "audit events not delivered in time, events are lost");
        }
        self.deliveries.close().await;
        self.connections.shutdown(Duration::ZERO).await;
    }
}
