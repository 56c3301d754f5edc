//! Delivery of events to the backends, within bounds on the memory of the events that wait for each of them.
//!
//! A delivery that has to wait runs in a separate task: the event arrives even if its request is cancelled.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use portico_audit::{Event, Stage};
use portico_kit::tasks::TaskSet;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::backend::{Backend, WaitMode};

/// Events that wait for one backend in the blocking modes, for requests and for streamed responses each.
///
/// Limit (Audit, bytes): requests wait; events of streamed responses are lost and counted.
const MAX_WAITING_BYTES: usize = 16 << 20;
/// Minimum size counted for an event in these modes.
///
/// The task of an event and the request to the webhook need more memory than the event.
///
/// Limit (Audit, bytes): smaller events count as this size.
const MIN_EVENT_BYTES: usize = 8 << 10;

/// One event, encoded for each backend; `None` for a backend that does not get it.
pub(crate) type EncodedEvent = Vec<Option<Bytes>>;

/// Backends, and the budgets of events that wait for them.
pub(crate) struct Deliveries {
    backends: Vec<Arc<BoundedBackend>>,
    tasks: TaskSet,
    /// Runtime of the deliveries: a request may end with the runtime that served it.
    runtime: Handle,
}

/// Backend with byte budgets for the events that wait for it. Requests that wait and background deliveries have separate
/// budgets: a client without credentials can send any number of requests, and must not displace events that would be lost.
struct BoundedBackend {
    backend: Backend,
    request_budget: Arc<Semaphore>,
    background_budget: Arc<Semaphore>,
}

impl Deliveries {
    /// Creates deliveries to `backends`, which run in tasks of the current runtime.
    pub(crate) fn new(backends: Vec<Backend>, tasks: TaskSet) -> Self {
        let budget = || Arc::new(Semaphore::new(MAX_WAITING_BYTES));
        let bounded = |backend| {
            Arc::new(BoundedBackend { backend, request_budget: budget(), background_budget: budget() })
        };
        Self { backends: backends.into_iter().map(bounded).collect(), tasks, runtime: Handle::current() }
    }

    /// Encodes an event for each backend; `json` is the event as one line.
    pub(crate) fn encode(&self, event: &Event, json: &Bytes) -> EncodedEvent {
        self.backends.iter().map(|bounded| bounded.backend.encode(event, json)).collect()
    }

    /// True if the first event of a request may be written together with the next one.
    pub(crate) fn can_defer(&self) -> bool {
        self.backends.iter().all(|bounded| bounded.backend.can_defer())
    }

    /// Delivers an event and waits as the modes of the backends require. Returns false if a strict backend failed.
    pub(crate) async fn process(&self, events: EncodedEvent, stage: Stage) -> bool {
        let (stored, waiting) = self.try_take(events);
        if waiting.is_empty() {
            return stored;
        }
        let delivered =
            join_all(waiting.into_iter().map(|waiting| self.deliver_waiting(waiting, stage))).await;
        stored && delivered.into_iter().all(|delivered| delivered)
    }

    /// Delivers an event in the background. It is lost, and counted as such, if too many events wait already.
    pub(crate) fn process_in_background(&self, events: EncodedEvent, stage: Stage) {
        for waiting in self.try_take(events).1 {
            let budget = Arc::clone(&waiting.bounded.background_budget);
            if let Ok(permit) = budget.try_acquire_many_owned(waiting.budget_bytes()) {
                self.spawn(waiting, stage, permit, drop);
            }
        }
    }

    /// Writes the accepted events, and accepts no more.
    pub(crate) async fn close(&self) {
        for bounded in &self.backends {
            bounded.backend.close().await;
        }
    }

    /// Passes the event to the backends that take it without waiting. Returns false if a strict one failed, and the event for
    /// each of the other backends.
    fn try_take(&self, events: EncodedEvent) -> (bool, Vec<WaitingEvent>) {
        let (mut stored, mut waiting) = (true, Vec::new());
        for (bounded, event) in self.backends.iter().zip(events) {
            let Some(event) = event else { continue };
            match bounded.backend.try_take(&event) {
                Some(accepted) => stored &= accepted,
                None => waiting.push(WaitingEvent::new(Arc::clone(bounded), event)),
            }
        }
        (stored, waiting)
    }

    /// Waits for budget and then for the backend. Returns false if the backend is strict and failed.
    async fn deliver_waiting(&self, waiting: WaitingEvent, stage: Stage) -> bool {
        let budget = Arc::clone(&waiting.bounded.request_budget);
        // The semaphore is never closed.
        let Ok(permit) = budget.acquire_many_owned(waiting.budget_bytes()).await else { return false };
        let (done, delivered) = oneshot::channel();
        self.spawn(waiting, stage, permit, move |stored| {
            // The request may have been cancelled.
            let _ = done.send(stored);
        });
        delivered.await.unwrap_or(false)
    }

    fn spawn(
        &self,
        waiting: WaitingEvent,
        stage: Stage,
        permit: OwnedSemaphorePermit,
        done: impl FnOnce(bool) + Send + 'static,
    ) {
        self.tasks.spawn_on(&self.runtime, "audit-event", async move {
            let stored = waiting.deliver(stage).await;
            drop(permit);
            done(stored);
        });
    }
}

/// Event that its backend has not taken. If dropped before delivery, it counts as lost.
struct WaitingEvent {
    bounded: Arc<BoundedBackend>,
    event: Option<Bytes>,
}

impl WaitingEvent {
    fn new(bounded: Arc<BoundedBackend>, event: Bytes) -> Self {
        bounded.backend.add_waiting(1);
        Self { bounded, event: Some(event) }
    }

    /// Returns the bytes that the event counts for in the budget.
    fn budget_bytes(&self) -> u32 {
        let bytes = self.event.as_ref().map_or(0, Bytes::len);
        u32::try_from(bytes.clamp(MIN_EVENT_BYTES, MAX_WAITING_BYTES)).unwrap_or(u32::MAX)
    }

    /// Delivers the event to the backend. Returns false if the backend is strict and failed.
    async fn deliver(mut self, stage: Stage) -> bool {
        let wait = if stage == Stage::RequestReceived { WaitMode::Strict } else { WaitMode::Blocking };
        let Some(event) = self.event.clone() else { return true };
        let stored = self.bounded.backend.take(event, wait).await;
        self.event = None;
        stored
    }
}

impl Drop for WaitingEvent {
    fn drop(&mut self) {
        self.bounded.backend.add_waiting(-1);
        if let Some(event) = &self.event {
            self.bounded.backend.count_lost(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use futures::FutureExt;
    use portico_kit::metrics::{Format, Registry};

    use super::*;
    use crate::metrics::AuditMetrics;
    use crate::settings::{AuditBatchSettings, AuditDelivery, AuditMode, AuditWebhookSettings};

    const MAX_WAITING_EVENTS: usize = MAX_WAITING_BYTES / MIN_EVENT_BYTES;

    /// Creates a webhook backend whose server accepts connections and never responds.
    fn silent_webhook(silent: &TcpListener, metrics: &AuditMetrics, tasks: &TaskSet) -> Backend {
        let kubeconfig = format!(
            r#"{{"kind":"Config","current-context":"c","contexts":[{{"name":"c","context":{{"cluster":"a"}}}}],
            "clusters":[{{"name":"a","cluster":{{"server":"http://{}"}}}}]}}"#,
            silent.local_addr().unwrap()
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), kubeconfig).unwrap();
        let settings = AuditWebhookSettings {
            config_file: file.path().to_owned(),
            initial_backoff: Duration::from_secs(10),
            delivery: AuditDelivery {
                mode: AuditMode::Blocking,
                batches: AuditBatchSettings {
                    buffer: 1,
                    max_size: 1,
                    max_wait: Duration::ZERO,
                    throttle: None,
                },
                truncation: None,
            },
        };
        Backend::webhook(&settings, metrics, tasks, tasks).unwrap()
    }

    fn event() -> Bytes {
        Bytes::from_static(b"{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\"}\n")
    }

    #[tokio::test]
    async fn events_waiting_for_stalled_webhooks_are_bounded_per_webhook_and_lost_events_are_counted() {
        let (registry, tasks) = (Registry::new(), TaskSet::new());
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let metrics = AuditMetrics::new(&registry);
        let webhook = || silent_webhook(&silent, &metrics, &tasks);
        let deliveries = Deliveries::new(vec![webhook(), webhook()], tasks.clone());
        let assert_metric = |metric: &str, events: usize| {
            let text = registry.encode(Format::Text);
            let line = format!("{metric}{{plugin=\"webhook\"}} {events}\n");
            assert!(text.contains(&line), "{line}: {text}");
        };
        let (lost, waiting) = ("apiserver_audit_error_total", "portico_audit_waiting_events");
        for _ in 0..MAX_WAITING_EVENTS + 100 {
            deliveries.process_in_background(vec![Some(event()), None], Stage::ResponseComplete);
        }
        assert_eq!(tasks.running().get("audit-event"), Some(&MAX_WAITING_EVENTS));
        assert_metric(lost, 100);
        assert_metric(waiting, MAX_WAITING_EVENTS);
        deliveries.process_in_background(vec![None, Some(event())], Stage::ResponseComplete);
        assert_metric(lost, 100);

        // Waiting requests have a separate budget; those beyond it wait, and the events of cancelled requests are lost.
        let mut blocked = Vec::new();
        for _ in 0..=MAX_WAITING_EVENTS {
            let request = deliveries.process(vec![Some(event()), None], Stage::ResponseStarted);
            // Each request runs in its own task.
            let mut request = tokio::task::unconstrained(request).boxed();
            assert_eq!((&mut request).now_or_never(), None);
            blocked.push(request);
        }
        assert_metric(waiting, 2 * MAX_WAITING_EVENTS + 2);
        deliveries.process_in_background(vec![None, Some(event())], Stage::ResponseComplete);
        assert_metric(lost, 100);
        drop(blocked);
        assert_metric(lost, 101);
        assert_metric(waiting, 2 * MAX_WAITING_EVENTS + 2);
    }
}
