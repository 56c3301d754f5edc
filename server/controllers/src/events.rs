//! Records events of the controllers that replace those of kube-controller-manager, in the format of client-go's recorder
//! (`tools/record`).
//!
//! Recording never blocks: events are written one by one from a queue and are dropped if the queue is full. Errors of writes
//! are only logged. The repair of Services records its events through `recorder`, as upstream does.

mod correlator;

use jiff::Timestamp;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, GroupVersion, Object, Status, time};
use portico_registry::{CreateOptions, ObjectPart, ObjectRef, Registry, UpdateOptions};
use tokio::sync::mpsc;

use crate::account::service_account_context;
use crate::recorder::set_regarding;
use crate::write_result::is_namespace_terminating;
use correlator::{CorrelatedEvent, Correlator, EventSource};

/// Events of controllers that wait to be written.
///
/// `maxQueuedEvents` of client-go.
///
/// Limit (Storage and watches): further ones are dropped.
const QUEUE_CAPACITY: usize = 1_000;

/// Writer of the events of all recorders. Cheap to clone.
#[derive(Clone)]
pub struct Events(mpsc::Sender<PendingEvent>);

/// Recorder of one controller. Cheap to clone.
#[derive(Clone)]
pub struct EventRecorder {
    events: Events,
    component: &'static str,
    account: &'static str,
}

/// An event in the queue.
struct PendingEvent {
    /// The event without the fields that the correlator sets.
    event: Object,
    source: EventSource,
    reason: &'static str,
    message: String,
    account: &'static str,
}

impl Events {
    /// Starts the writer, which runs until `tasks` is cancelled.
    #[must_use]
    pub fn start(registry: &Registry, tasks: &TaskSet) -> Self {
        let (sender, mut queue) = mpsc::channel::<PendingEvent>(QUEUE_CAPACITY);
        let registry = registry.clone();
        tasks.spawn_until_cancelled("event-recorder", async move {
            let mut correlator = Correlator::default();
            while let Some(pending) = queue.recv().await {
                let now = Timestamp::now();
                let correlated = correlator.correlate(&pending.source, pending.reason, &pending.message, now);
                let Some(correlated) = correlated else { continue };
                if let Err(status) = write_event(&registry, pending, correlated, now).await
                    && !is_namespace_terminating(&status)
                {
                    tracing::warn!(error = %status, "cannot record an event");
                }
            }
        });
        Self(sender)
    }

    /// Creates a recorder that reports as this component and writes as this service account.
    #[must_use]
    pub(crate) fn recorder(&self, component: &'static str, account: &'static str) -> EventRecorder {
        EventRecorder { events: self.clone(), component, account }
    }
}

impl EventRecorder {
    /// Records an event of type Warning.
    pub(crate) fn warn(&self, object: &Object, reason: &'static str, message: String) {
        self.record("Warning", object, reason, message);
    }

    /// Records an event of type Normal.
    pub(crate) fn normal(&self, object: &Object, reason: &'static str, message: String) {
        self.record("Normal", object, reason, message);
    }

    fn record(&self, kind: &'static str, object: &Object, reason: &'static str, message: String) {
        let mut event = Object::new(&GroupVersion::new("", "v1").kind("Event"));
        set_regarding(&mut event, object);
        event.set(&["type"], kind);
        event.set(&["reason"], reason);
        event.set(&["source", "component"], self.component);
        event.set(&["reportingComponent"], self.component);
        let source = EventSource {
            component: self.component,
            kind,
            object: [object.kind(), object.namespace(), object.name(), object.uid()].join("/"),
        };
        let pending = PendingEvent { event, source, reason, message, account: self.account };
        if self.events.0.try_send(pending).is_err() {
            tracing::warn!(reason, "event queue is full, event dropped");
        }
    }
}

/// Creates an event, or increments the count of an existing one.
async fn write_event(
    registry: &Registry,
    pending: PendingEvent,
    correlated: CorrelatedEvent,
    now: Timestamp,
) -> Result<(), Box<Status>> {
    let (resource, context) = (GroupResource::new("", "events"), service_account_context(pending.account));
    let CorrelatedEvent { id, count, first, message } = correlated;
    let name = format!("{}.{id:x}", pending.event.at(&["involvedObject", "name"]).str());
    let namespace = pending.event.namespace().to_owned();
    let object_ref = ObjectRef { resource: resource.clone(), namespace, name: name.clone() };
    let existing = if count > 1 { registry.get_stored(&object_ref).await? } else { None };
    let mut event = existing.as_ref().map_or(pending.event, |existing| existing.object().clone());
    event.set(&["metadata", "name"], name);
    event.set(&["message"], message);
    event.set(&["count"], count);
    event.set(&["firstTimestamp"], time::rfc3339(first));
    event.set(&["lastTimestamp"], time::rfc3339(now));
    match existing {
        Some(_) => {
            registry.update(&context, &resource, ObjectPart::Main, event, &UpdateOptions::default()).await?;
        }
        None => drop(registry.create(&context, &resource, event, &CreateOptions::default()).await?),
    }
    Ok(())
}
