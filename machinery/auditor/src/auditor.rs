//! What is recorded of requests, by a policy, and the backends that take the events.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portico_audit::{AuditConfig, Event, Policy, Stage};
use portico_kit::certs::{FileError, FileWatch};
use portico_kit::metrics::Registry;
use portico_kit::recent::Recent;
use portico_kit::tasks::TaskSet;
use portico_machinery::{RequestInfo, UserInfo};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::backend::Backend;
use crate::deliveries::{Deliveries, Encoded};
use crate::error::AuditError;
use crate::metrics::AuditMetrics;
use crate::policy_file;
use crate::settings::AuditSettings;

/// Time at shutdown to send buffered events to the audit webhook.
///
/// Limit (Audit): the rest is lost and logged.
const FLUSH: Duration = Duration::from_secs(30);

/// Maximum number of recent audit events of programs, and of browsers.
///
/// Limit (Console): the oldest events are removed; a slow reader learns how many it missed.
const TAIL_EVENTS: usize = 500;
/// Maximum size of the recent audit events of programs, and of browsers, in bytes.
///
/// Limit (Console, bytes): the oldest events are removed.
const TAIL_BYTES: usize = 1 << 20;
/// Start of the user agent of all browsers.
const BROWSER: &str = "Mozilla/";

/// Latest audit events, kept in memory. Requests of browsers are kept apart: the console sends many, which would displace the others.
#[derive(Clone)]
pub struct Tail {
    /// Events of requests by programs.
    pub programs: Arc<Recent>,
    /// Events of requests by browsers, the console among them.
    pub browsers: Arc<Recent>,
}

impl Tail {
    fn new() -> Self {
        let recent = || Arc::new(Recent::new(TAIL_EVENTS, TAIL_BYTES));
        Self { programs: recent(), browsers: recent() }
    }

    fn push(&self, event: &Event, json: Bytes) {
        let is_browser = event.user_agent.starts_with(BROWSER);
        if is_browser { &self.browsers } else { &self.programs }.push(json);
    }
}

/// What is recorded, and where it goes.
pub struct Auditor {
    policy: FileWatch<Policy>,
    deliveries: Deliveries,
    tail: Option<Tail>,
    metrics: AuditMetrics,
    /// Requests whose last event has not come.
    under_way: TaskTracker,
    /// How long the end of the process waits for those.
    shutdown_timeout: Duration,
    /// What takes events in the background; ends after everything else.
    tasks: TaskSet,
    /// Connections of the webhook, which those tasks use to the last.
    connections: TaskSet,
}

impl Auditor {
    /// Reads the policy, opens the log and reads the webhook's configuration; nothing without a policy or somewhere to record.
    /// Called in the runtime that is the last to end.
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
        policy_file::warn_of(&policy.current());
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
            tail: settings.tail.then(Tail::new),
            metrics,
            under_way: TaskTracker::new(),
            shutdown_timeout,
            tasks,
            connections,
        })))
    }

    /// Returns the latest events, if [`AuditSettings::tail`] is set.
    pub fn tail(&self) -> Option<Tail> {
        self.tail.clone()
    }

    /// What is recorded of a request.
    pub fn evaluate(&self, user: Option<&UserInfo>, request: &RequestInfo) -> AuditConfig {
        let config = self.policy.current().evaluate(user, request);
        self.metrics.level(config.level);
        config
    }

    /// Makes an event's bytes, once for all that take the same.
    pub(crate) fn encode(&self, event: &Event) -> Encoded {
        self.metrics.events.inc();
        let mut json = event.to_json();
        json.push(b'\n');
        let json = Bytes::from(json);
        if let Some(tail) = &self.tail {
            tail.push(event, json.clone());
        }
        self.deliveries.encode(event, &json)
    }

    /// Whether events may be written together that come one after the other: nobody waits for the first, and all that is written
    /// is lines.
    pub(crate) fn may_hold(&self) -> bool {
        self.deliveries.may_hold()
    }

    /// Delivers an event to all backends and waits as their modes say; false if a strict one failed.
    pub(crate) async fn process(&self, encoded: Encoded, stage: Stage) -> bool {
        self.deliveries.process(encoded, stage).await
    }

    /// Delivers an event without waiting.
    pub(crate) fn hand_over(&self, encoded: Encoded, stage: Stage) {
        self.deliveries.hand_over(encoded, stage);
    }

    /// A request whose last event is waited for while this is held.
    pub(crate) fn begun(&self) -> TaskTrackerToken {
        self.under_way.token()
    }

    /// A request was refused because its event was not stored.
    pub(crate) fn rejected(&self) {
        self.metrics.rejected.inc();
    }

    /// Reads the policy again. One that cannot be used is returned, and the old one stays.
    pub async fn reload(&self) -> Option<FileError> {
        match self.policy.reload().await {
            Ok(changed) => {
                if changed {
                    policy_file::warn_of(&self.policy.current());
                }
                None
            }
            Err(error) => Some(error),
        }
    }

    /// Delivers all events that came before, and takes no more.
    pub async fn shutdown(&self) {
        // Who serves a stream may learn a moment later than its connection that it has ended.
        self.under_way.close();
        if tokio::time::timeout(self.shutdown_timeout, self.under_way.wait()).await.is_err() {
            tracing::warn!(
                requests = self.under_way.len(),
                "requests did not end in time, their last audit events are lost"
            );
        }
        let unsent = self.tasks.shutdown(FLUSH).await;
        if !unsent.is_empty() {
            tracing::error!(deliveries = unsent.len(), "audit events not delivered in time, events are lost");
        }
        self.deliveries.close().await;
        self.connections.shutdown(Duration::ZERO).await;
    }
}
