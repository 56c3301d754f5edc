//! Delivery of events to the backends, within a bound on the memory of the events that wait for one.
//!
//! A delivery that has to wait runs in a task of its own: the event arrives even if its request is cancelled.

use std::sync::Arc;

use bytes::Bytes;
use portico_audit::{Event, Stage};
use portico_kit::tasks::TaskSet;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::backend::{Backend, Wait};

/// Bytes of events that may wait for a backend in the blocking modes.
const MAX_WAITING_BYTES: usize = 32 << 20;
/// Bytes that a small event counts for: its task and its request to the webhook need more memory than the event.
const MIN_EVENT_BYTES: usize = 8 << 10;

/// One event, encoded for each backend; `None` for a backend that does not get it.
pub(crate) type Encoded = Vec<Option<Bytes>>;

/// The backends, and the events on their way to them.
pub(crate) struct Deliveries {
    backends: Arc<[Backend]>,
    room: Arc<Semaphore>,
    tasks: TaskSet,
    /// Runs the deliveries: a request may end with the runtime that served it.
    runtime: Handle,
}

impl Deliveries {
    /// Delivers to `backends` in tasks of the current runtime.
    pub(crate) fn new(backends: Vec<Backend>, tasks: TaskSet) -> Self {
        let room = Arc::new(Semaphore::new(MAX_WAITING_BYTES));
        Self { backends: backends.into(), room, tasks, runtime: Handle::current() }
    }

    /// Encodes an event for each backend; `json` is the event as one line.
    pub(crate) fn encode(&self, event: &Event, json: &Bytes) -> Encoded {
        self.backends.iter().map(|backend| backend.encode(event, json)).collect()
    }

    /// True if the first event of a request may be written together with the next one.
    pub(crate) fn may_hold(&self) -> bool {
        self.backends.iter().all(Backend::may_hold)
    }

    /// Delivers an event and waits as the modes of the backends say; false if a strict backend failed.
    pub(crate) async fn process(&self, mut events: Encoded, stage: Stage) -> bool {
        let stored = self.take_at_once(&mut events);
        let Some(waiting) = self.waiting(events) else { return stored };
        // The semaphore is never closed.
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(waiting.size()).await else { return false };
        let (done, delivered) = tokio::sync::oneshot::channel();
        self.spawn(waiting, stage, room, move |stored| {
            // The request may have been cancelled.
            let _ = done.send(stored);
        });
        stored & delivered.await.unwrap_or(false)
    }

    /// Delivers an event without waiting. It is lost, and counted as such, if too many events wait already.
    pub(crate) fn hand_over(&self, mut events: Encoded, stage: Stage) {
        self.take_at_once(&mut events);
        let Some(waiting) = self.waiting(events) else { return };
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(waiting.size()) {
            self.spawn(waiting, stage, room, drop);
        }
    }

    /// Writes what is under way, and accepts no more events.
    pub(crate) async fn close(&self) {
        for backend in &*self.backends {
            backend.close().await;
        }
    }

    /// Removes the events that their backends take without waiting; false if a strict backend failed.
    fn take_at_once(&self, events: &mut Encoded) -> bool {
        let mut stored = true;
        for (backend, slot) in self.backends.iter().zip(events) {
            if let Some(event) = slot
                && let Some(taken) = backend.take_at_once(event)
            {
                stored &= taken;
                *slot = None;
            }
        }
        stored
    }

    fn waiting(&self, events: Encoded) -> Option<Waiting> {
        let is_any = events.iter().any(Option::is_some);
        is_any.then(|| Waiting { backends: Arc::clone(&self.backends), events })
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

/// An event that its backends have not taken. Dropped before they have, it counts as lost.
struct Waiting {
    backends: Arc<[Backend]>,
    events: Encoded,
}

impl Waiting {
    /// Bytes that the event counts for.
    fn size(&self) -> u32 {
        let bytes = self.events.iter().flatten().map(Bytes::len).sum::<usize>();
        u32::try_from(bytes.clamp(MIN_EVENT_BYTES, MAX_WAITING_BYTES)).unwrap_or(u32::MAX)
    }

    /// Gives the event to each backend in turn; false if a strict one failed.
    async fn deliver(mut self, stage: Stage) -> bool {
        let wait = if stage == Stage::RequestReceived { Wait::Strict } else { Wait::Blocking };
        let mut stored = true;
        for (backend, slot) in self.backends.iter().zip(&mut self.events) {
            if let Some(event) = slot.clone() {
                stored &= backend.take(event, wait).await;
                *slot = None;
            }
        }
        stored
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        for (backend, slot) in self.backends.iter().zip(&self.events) {
            if let Some(event) = slot {
                backend.lose(event);
            }
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

    /// Deliveries to a webhook that accepts connections and never answers.
    fn to_silent_webhook(registry: &Registry, tasks: &TaskSet) -> (Deliveries, TcpListener) {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
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
        let metrics = AuditMetrics::new(registry);
        let webhook = Backend::webhook(&settings, &metrics, tasks, tasks).unwrap();
        (Deliveries::new(vec![webhook], tasks.clone()), silent)
    }

    fn event() -> Encoded {
        vec![Some(Bytes::from_static(b"{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\"}\n"))]
    }

    #[tokio::test]
    async fn events_that_a_stalled_webhook_does_not_take_are_bounded_and_the_lost_ones_counted() {
        let (registry, tasks) = (Registry::new(), TaskSet::new());
        let (deliveries, _silent) = to_silent_webhook(&registry, &tasks);
        let has_lost = |events: usize| {
            let text = registry.encode(Format::Text);
            let line = format!("apiserver_audit_error_total{{plugin=\"webhook\"}} {events}\n");
            assert!(text.contains(&line), "{text}");
        };
        for _ in 0..MOST + 100 {
            deliveries.hand_over(event(), Stage::ResponseComplete);
        }
        assert_eq!(tasks.running().get("audit-event"), Some(&MOST));
        has_lost(100);
        let mut blocked = deliveries.process(event(), Stage::ResponseComplete).boxed();
        assert_eq!((&mut blocked).now_or_never(), None, "a request waits for room");
        drop(blocked);
        has_lost(101);
    }
}
