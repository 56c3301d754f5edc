//! Events that controllers leave about objects, as upstream's recorder writes them (`events.k8s.io/v1`).
//!
//! An event is a courtesy: one that cannot be written is logged, and whoever records goes on.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use portico_machinery::{GroupResource, GroupVersion, Object, time};
use portico_registry::{Context, CreateOptions, Registry, Stored};

/// So many warnings are remembered as reported; then all are forgotten, and reported again when they come again.
const REMEMBERED: usize = 4_096;

/// Writes events in a controller's name. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    registry: Registry,
    controller: &'static str,
    instance: String,
    reported: Arc<Mutex<HashSet<String>>>,
}

/// What to report about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Why, in one word.
    pub reason: &'static str,
    /// What was done, in one word.
    pub action: &'static str,
    /// For people.
    pub note: String,
}

impl Recorder {
    /// A recorder of this controller on this host.
    #[must_use]
    pub fn new(registry: Registry, controller: &'static str, hostname: &str) -> Self {
        let instance = format!("{controller}-{hostname}");
        Self { registry, controller, instance, reported: Arc::default() }
    }

    /// Warns about an object; the same warning about the same state is written once.
    pub async fn warn(&self, about: &Stored, warning: &Warning) {
        let key = format!("{}/{}/{}", about.uid(), warning.reason, warning.note);
        {
            let mut reported = self.reported.lock();
            if reported.len() >= REMEMBERED {
                reported.clear();
            }
            if !reported.insert(key) {
                return;
            }
        }
        let event = self.event(about.object(), warning, Timestamp::now());
        let (context, events) = (Context::system("system:apiserver"), GroupResource::new("", "events"));
        if let Err(status) = self.registry.create(&context, &events, event, &CreateOptions::default()).await {
            tracing::warn!(error = %status, reason = warning.reason, "cannot record an event");
        }
    }

    fn event(&self, about: &Object, warning: &Warning, now: Timestamp) -> Object {
        let mut event = Object::new(&GroupVersion::new("", "v1").kind("Event"));
        event.set(&["metadata", "name"], format!("{}.{:x}", about.name(), now.as_nanosecond()));
        refer(&mut event, about);
        event.set(&["eventTime"], time::rfc3339_micro(now));
        event.set(&["type"], "Warning");
        event.set(&["reason"], warning.reason);
        event.set(&["action"], warning.action);
        event.set(&["message"], &warning.note);
        event.set(&["reportingComponent"], self.controller);
        event.set(&["reportingInstance"], &self.instance);
        event
    }
}

/// Sets the object that an event is about, and puts the event into the namespace of that.
pub(crate) fn refer(event: &mut Object, about: &Object) {
    let namespace = Some(about.namespace()).filter(|n| !n.is_empty()).unwrap_or("default");
    event.set(&["metadata", "namespace"], namespace);
    let metadata = [
        ("namespace", about.namespace()),
        ("name", about.name()),
        ("uid", about.uid()),
        ("resourceVersion", about.resource_version()),
    ];
    let kind = [("kind", about.kind()), ("apiVersion", about.api_version())];
    for (field, value) in kind.into_iter().chain(metadata).filter(|(_, value)| !value.is_empty()) {
        event.set(&["involvedObject", field], value);
    }
}
