//! Records events of the controllers that replace those of kube-controller-manager, in the format of client-go's recorder
//! (`tools/record`).
//!
//! Recording never blocks: events are written one by one from a queue and are dropped if the queue is full. Errors of writes
//! are only logged. The repair of Services records its events through `recorder`, as upstream does.

mod correlator;

use jiff::Timestamp;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, GroupVersion, Object, Status, time};
use portico_registry::{CreateOptions, ObjectRef, Part, Registry, UpdateOptions};
use tokio::sync::mpsc;

use crate::account::account;
use crate::outcome::is_namespace_going;
use crate::recorder::refer;
use correlator::{Correlated, Correlator, Source};

/// Events of controllers that wait to be written.
///
/// `maxQueuedEvents` of client-go.
///
/// Limit (Storage and watches): further ones are dropped.
const QUEUED: usize = 1_000;

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
    source: Source,
    reason: &'static str,
    message: String,
    account: &'static str,
}

impl Events {
    /// Starts the writer, which runs until `tasks` is cancelled.
    #[must_use]
    pub fn start(registry: &Registry, tasks: &TaskSet) -> Self {
        let (sender, mut queue) = mpsc::channel::<PendingEvent>(QUEUED);
        let registry = registry.clone();
        tasks.spawn_until_cancelled("event-recorder", async move {
            let mut correlator = Correlator::default();
            while let Some(pending) = queue.recv().await {
                let now = Timestamp::now();
                let correlated = correlator.correlate(&pending.source, pending.reason, &pending.message, now);
                let Some(correlated) = correlated else { continue };
                if let Err(status) = write(&registry, pending, correlated, now).await
                    && !is_namespace_going(&status)
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
    pub(crate) fn warn(&self, about: &Object, reason: &'static str, message: String) {
        self.record("Warning", about, reason, message);
    }

    /// Records an event of type Normal.
    pub(crate) fn normal(&self, about: &Object, reason: &'static str, message: String) {
        self.record("Normal", about, reason, message);
    }

    fn record(&self, kind: &'static str, about: &Object, reason: &'static str, message: String) {
        let mut event = Object::new(&GroupVersion::new("", "v1").kind("Event"));
        refer(&mut event, about);
        event.set(&["type"], kind);
        event.set(&["reason"], reason);
        event.set(&["source", "component"], self.component);
        event.set(&["reportingComponent"], self.component);
        let source = Source {
            component: self.component,
            kind,
            about: [about.kind(), about.namespace(), about.name(), about.uid()].join("/"),
        };
        let pending = PendingEvent { event, source, reason, message, account: self.account };
        if self.events.0.try_send(pending).is_err() {
            tracing::warn!(reason, "event queue is full, event dropped");
        }
    }
}

/// Creates an event, or increments the count of an existing one.
async fn write(
    registry: &Registry,
    pending: PendingEvent,
    correlated: Correlated,
    now: Timestamp,
) -> Result<(), Box<Status>> {
    let (resource, context) = (GroupResource::new("", "events"), account(pending.account));
    let Correlated { id, count, first, message } = correlated;
    let name = format!("{}.{id:x}", pending.event.at(&["involvedObject", "name"]).str());
    let namespace = pending.event.namespace().to_owned();
    let at = ObjectRef { resource: resource.clone(), namespace, name: name.clone() };
    let there = if count > 1 { registry.get_stored(&at).await? } else { None };
    let mut event = there.as_ref().map_or(pending.event, |there| there.object().clone());
    event.set(&["metadata", "name"], name);
    event.set(&["message"], message);
    event.set(&["count"], count);
    event.set(&["firstTimestamp"], time::rfc3339(first));
    event.set(&["lastTimestamp"], time::rfc3339(now));
    match there {
        Some(_) => {
            registry.update(&context, &resource, Part::Main, event, &UpdateOptions::default()).await?;
        }
        None => drop(registry.create(&context, &resource, event, &CreateOptions::default()).await?),
    }
    Ok(())
}
