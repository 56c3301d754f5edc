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

use crate::backend::{Backend, Wait};

/// Events that wait for one backend in the blocking modes, for requests and for streamed responses each.
///
/// Limit (Audit, bytes): requests wait; events of streamed responses are lost and counted.
const MAX_WAITING_BYTES: usize = 16 << 20;
/// Minimum size counted for an event in these modes.
///
/// Its task and its request to the webhook need more memory than the event.
///
/// Limit (Audit, bytes): smaller events count as this size.
const MIN_EVENT_BYTES: usize = 8 << 10;

/// One event, encoded for each backend; `None` for a backend that does not get it.
pub(crate) type Encoded = Vec<Option<Bytes>>;

/// Backends, and the budgets of events that wait for them.
pub(crate) struct Deliveries {
    lanes: Vec<Arc<Lane>>,
    tasks: TaskSet,
    /// Runtime of the deliveries: a request may end with the runtime that served it.
    runtime: Handle,
}

/// Backend with byte budgets for the events that wait for it. Requests that wait and background deliveries have separate
/// budgets: a client without credentials can send any number of requests, and must not displace events that would be lost.
struct Lane {
    backend: Backend,
    room_for_waiting: Arc<Semaphore>,
    room_for_tasks: Arc<Semaphore>,
}

impl Deliveries {
    /// Creates deliveries to `backends`, which run in tasks of the current runtime.
    pub(crate) fn new(backends: Vec<Backend>, tasks: TaskSet) -> Self {
        let room = || Arc::new(Semaphore::new(MAX_WAITING_BYTES));
        let lane = |backend| Arc::new(Lane { backend, room_for_waiting: room(), room_for_tasks: room() });
        Self { lanes: backends.into_iter().map(lane).collect(), tasks, runtime: Handle::current() }
    }

    /// Encodes an event for each backend; `json` is the event as one line.
    pub(crate) fn encode(&self, event: &Event, json: &Bytes) -> Encoded {
        self.lanes.iter().map(|lane| lane.backend.encode(event, json)).collect()
    }

    /// True if the first event of a request may be written together with the next one.
    pub(crate) fn may_hold(&self) -> bool {
        self.lanes.iter().all(|lane| lane.backend.may_hold())
    }

    /// Delivers an event and waits as the modes of the backends require. Returns false if a strict backend failed.
    pub(crate) async fn process(&self, events: Encoded, stage: Stage) -> bool {
        let (stored, waiting) = self.take_at_once(events);
        if waiting.is_empty() {
            return stored;
        }
        let delivered = join_all(waiting.into_iter().map(|waiting| self.delivered(waiting, stage))).await;
        stored && delivered.into_iter().all(|delivered| delivered)
    }

    /// Delivers an event in the background. It is lost, and counted as such, if too many events wait already.
    pub(crate) fn hand_over(&self, events: Encoded, stage: Stage) {
        for waiting in self.take_at_once(events).1 {
            let room = Arc::clone(&waiting.lane.room_for_tasks);
            if let Ok(room) = room.try_acquire_many_owned(waiting.size()) {
                self.spawn(waiting, stage, room, drop);
            }
        }
    }

    /// Writes the accepted events, and accepts no more.
    pub(crate) async fn close(&self) {
        for lane in &self.lanes {
            lane.backend.close().await;
        }
    }

    /// Passes the event to the backends that take it without waiting. Returns false if a strict one failed, and the event for
    /// each of the other backends.
    fn take_at_once(&self, events: Encoded) -> (bool, Vec<Waiting>) {
        let (mut stored, mut waiting) = (true, Vec::new());
        for (lane, event) in self.lanes.iter().zip(events) {
            let Some(event) = event else { continue };
            match lane.backend.take_at_once(&event) {
                Some(taken) => stored &= taken,
                None => waiting.push(Waiting::new(Arc::clone(lane), event)),
            }
        }
        (stored, waiting)
    }

    /// Waits for budget and then for the backend. Returns false if the backend is strict and failed.
    async fn delivered(&self, waiting: Waiting, stage: Stage) -> bool {
        let room = Arc::clone(&waiting.lane.room_for_waiting);
        // The semaphore is never closed.
        let Ok(room) = room.acquire_many_owned(waiting.size()).await else { return false };
        let (done, delivered) = oneshot::channel();
        self.spawn(waiting, stage, room, move |stored| {
            // The request may have been cancelled.
            let _ = done.send(stored);
        });
        delivered.await.unwrap_or(false)
    }

    fn spawn(
        &self,
        waiting: Waiting,
        stage: Stage,
        room: OwnedSemaphorePermit,
        done: impl FnOnce(bool) + Send + 'static,
    ) {
        self.tasks.spawn_on(&self.runtime, "audit-event", async move {
            let stored = waiting.deliver(stage).await;
            drop(room);
            done(stored);
        });
    }
}

/// Event that its backend has not taken. If dropped before delivery, it counts as lost.
struct Waiting {
    lane: Arc<Lane>,
    event: Option<Bytes>,
}

impl Waiting {
    fn new(lane: Arc<Lane>, event: Bytes) -> Self {
        lane.backend.waiting(1);
        Self { lane, event: Some(event) }
    }

    /// Returns the bytes that the event counts for in the budget.
    fn size(&self) -> u32 {
        let bytes = self.event.as_ref().map_or(0, Bytes::len);
        u32::try_from(bytes.clamp(MIN_EVENT_BYTES, MAX_WAITING_BYTES)).unwrap_or(u32::MAX)
    }

    /// Delivers the event to the backend. Returns false if the backend is strict and failed.
    async fn deliver(mut self, stage: Stage) -> bool {
        let wait = if stage == Stage::RequestReceived { Wait::Strict } else { Wait::Blocking };
        let Some(event) = self.event.clone() else { return true };
        let stored = self.lane.backend.take(event, wait).await;
        self.event = None;
        stored
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.lane.backend.waiting(-1);
        if let Some(event) = &self.event {
            self.lane.backend.lose(event);
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
    use crate::settings::{AuditBatches, AuditDelivery, AuditMode, AuditWebhookSettings};

    const MOST: usize = MAX_WAITING_BYTES / MIN_EVENT_BYTES;

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
                batches: AuditBatches { buffer: 1, max_size: 1, max_wait: Duration::ZERO, throttle: None },
                truncation: None,
            },
        };
        Backend::webhook(&settings, metrics, tasks, tasks).unwrap()
    }

    fn event() -> Bytes {
        Bytes::from_static(b"{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\"}\n")
    }

    #[tokio::test]
    async fn events_that_stalled_webhooks_do_not_take_are_bounded_for_each_and_the_lost_ones_counted() {
        let (registry, tasks) = (Registry::new(), TaskSet::new());
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let metrics = AuditMetrics::new(&registry);
        let webhook = || silent_webhook(&silent, &metrics, &tasks);
        let deliveries = Deliveries::new(vec![webhook(), webhook()], tasks.clone());
        let has = |metric: &str, events: usize| {
            let text = registry.encode(Format::Text);
            let line = format!("{metric}{{plugin=\"webhook\"}} {events}\n");
            assert!(text.contains(&line), "{line}: {text}");
        };
        let (lost, waiting) = ("apiserver_audit_error_total", "portico_audit_waiting_events");
        for _ in 0..MOST + 100 {
            deliveries.hand_over(vec![Some(event()), None], Stage::ResponseComplete);
        }
        assert_eq!(tasks.running().get("audit-event"), Some(&MOST));
        has(lost, 100);
        has(waiting, MOST);
        deliveries.hand_over(vec![None, Some(event())], Stage::ResponseComplete);
        has(lost, 100);

        // Waiting requests have a separate budget; those beyond it wait, and the events of cancelled requests are lost.
        let mut blocked = Vec::new();
        for _ in 0..=MOST {
            let request = deliveries.process(vec![Some(event()), None], Stage::ResponseStarted);
            // Each request runs in its own task.
            let mut request = tokio::task::unconstrained(request).boxed();
            assert_eq!((&mut request).now_or_never(), None);
            blocked.push(request);
        }
        has(waiting, 2 * MOST + 2);
        deliveries.hand_over(vec![None, Some(event())], Stage::ResponseComplete);
        has(lost, 100);
        drop(blocked);
        has(lost, 101);
        has(waiting, 2 * MOST + 2);
    }
}
