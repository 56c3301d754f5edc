//! One audit backend: its event format, truncation and buffering, and the modes in which requests wait for it.

use std::sync::Arc;

use bytes::Bytes;
use portico_audit::{Event, Level};
use portico_kit::tasks::TaskSet;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::batch_sender::BatchSender;
use crate::destination::Destination;
use crate::error::AuditError;
use crate::log::LogDestination;
use crate::metrics::AuditMetrics;
use crate::settings::{
    AuditDelivery, AuditFormat, AuditLogSettings, AuditMode, AuditWebhookSettings, TruncationLimits,
};
use crate::webhook::WebhookDestination;

/// Upstream's names of the buffering and the truncating plugin, in `apiserver_audit_error_total`.
const BUFFERED_PLUGIN: &str = "buffered";
const TRUNCATE_PLUGIN: &str = "truncate";

/// Modes of a backend in which the request waits for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitMode {
    /// Only `blocking-strict`: the request has not started.
    Strict,
    /// Both blocking modes: the response waits.
    Blocking,
}

/// Audit backend: a destination with its settings.
pub(super) struct Backend {
    destination: Arc<Destination>,
    strict: bool,
    legacy: bool,
    truncation: Option<TruncationLimits>,
    /// Queue of batch mode.
    buffer: Option<mpsc::Sender<Bytes>>,
    /// Events that wait for the destination, or for space in its queue.
    waiting: Gauge,
    metrics: AuditMetrics,
}

impl Backend {
    /// Opens a backend that writes lines to a file.
    pub(super) fn log(
        settings: &AuditLogSettings,
        metrics: &AuditMetrics,
        tasks: &TaskSet,
    ) -> Result<Self, AuditError> {
        let log = LogDestination::open(settings, metrics.clone())
            .map_err(|source| AuditError::Log { path: settings.path.display().to_string(), source })?;
        let legacy = settings.format == AuditFormat::Legacy;
        Ok(Self::new(Destination::Log(log), &settings.delivery, legacy, metrics, tasks))
    }

    /// Creates a backend that posts lists of events to a server.
    pub(super) fn webhook(
        settings: &AuditWebhookSettings,
        metrics: &AuditMetrics,
        tasks: &TaskSet,
        connections: &TaskSet,
    ) -> Result<Self, AuditError> {
        let webhook =
            WebhookDestination::read(settings, metrics.clone(), connections).map_err(AuditError::Webhook)?;
        Ok(Self::new(Destination::Webhook(Box::new(webhook)), &settings.delivery, false, metrics, tasks))
    }

    fn new(
        destination: Destination,
        delivery: &AuditDelivery,
        legacy: bool,
        metrics: &AuditMetrics,
        tasks: &TaskSet,
    ) -> Self {
        let destination = Arc::new(destination);
        let buffer = (delivery.mode == AuditMode::Batch).then(|| {
            let max_bytes = delivery.truncation.map(|truncation| truncation.max_batch_bytes);
            BatchSender::start(delivery.batches, max_bytes, &destination, tasks)
        });
        Self {
            strict: delivery.mode == AuditMode::BlockingStrict,
            legacy,
            truncation: delivery.truncation,
            buffer,
            waiting: metrics.waiting_gauge(destination.plugin()),
            destination,
            metrics: metrics.clone(),
        }
    }

    /// Encodes an event for this backend; `json` is the event as one line. Returns `None` if it is too large even when truncated.
    pub(super) fn encode(&self, event: &Event, json: &Bytes) -> Option<Bytes> {
        let Some(limit) = self.truncation.map(|truncation| truncation.max_event_bytes) else {
            return Some(self.format_event(event, json));
        };
        if json.len() <= limit {
            return Some(self.format_event(event, json));
        }
        if event.level >= Level::Request {
            let event = event.truncated();
            let mut json = event.to_json();
            json.push(b'\n');
            if json.len() <= limit {
                return Some(self.format_event(&event, &Bytes::from(json)));
            }
        }
        self.metrics.count_lost(TRUNCATE_PLUGIN, 1, "event is too large even after truncating");
        None
    }

    fn format_event(&self, event: &Event, json: &Bytes) -> Bytes {
        match self.legacy {
            true => Bytes::from(format!("{}\n", event.to_line())),
            false => json.clone(),
        }
    }

    /// True if the first event of a request may be written together with the next one.
    pub(super) fn can_defer(&self) -> bool {
        !self.strict && self.buffer.is_none() && matches!(*self.destination, Destination::Log(_))
    }

    /// Takes an event if that needs no waiting. Returns false if the request must be refused, `None` if the event has to wait.
    pub(super) fn try_take(&self, event: &Bytes) -> Option<bool> {
        match &*self.destination {
            _ if self.buffer.is_some() => {
                self.push_to_buffer(event.clone());
                Some(true)
            }
            Destination::Log(log) => log.try_write(event).map(|written| written || !self.strict),
            Destination::Webhook(_) => None,
        }
    }

    /// Takes an event that [`Backend::try_take`] did not take. Returns false if the request must be refused.
    pub(super) async fn take(&self, event: Bytes, wait: WaitMode) -> bool {
        let wait = self.strict || wait == WaitMode::Blocking;
        self.destination.deliver(vec![event], wait).await || !self.strict
    }

    /// Counts events that start to wait for the backend (1) or stop waiting (-1).
    pub(super) fn add_waiting(&self, events: i64) {
        self.waiting.inc_by(events);
    }

    /// Counts the events in `lines` as lost.
    pub(super) fn count_lost(&self, lines: &[u8]) {
        let events = lines.iter().filter(|byte| **byte == b'\n').count();
        self.metrics.count_lost(
            self.destination.plugin(),
            events,
            "the queue of the backend is full, or the server is shutting down",
        );
    }

    /// Queues an event for its batch; drops it if the queue is full.
    fn push_to_buffer(&self, event: Bytes) {
        let Some(buffer) = &self.buffer else { return };
        match buffer.try_send(event) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.metrics.count_lost(BUFFERED_PLUGIN, 1, "audit buffer queue blocked")
            }
            Err(TrySendError::Closed(_)) => {
                self.metrics.count_lost(BUFFERED_PLUGIN, 1, "audit backend shut down")
            }
        }
    }

    /// Writes the accepted lines, and accepts no more.
    pub(super) async fn close(&self) {
        if let Destination::Log(log) = &*self.destination {
            log.close().await;
        }
    }
}
