//! Records events about objects as upstream's recorder does (`events.k8s.io/v1`).
//!
//! Errors of writes are only logged and do not affect the controller.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use portico_machinery::{GroupResource, GroupVersion, Object, time};
use portico_registry::{Context, CreateOptions, Registry, StoredObject};

/// Maximum number of remembered warnings; when it is reached all are forgotten, and repeated ones are reported again.
const MAX_REPORTED: usize = 4_096;

/// Recorder of a controller's events. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    registry: Registry,
    controller: &'static str,
    instance: String,
    reported: Arc<Mutex<HashSet<String>>>,
}

/// Warning about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Reason in CamelCase.
    pub reason: &'static str,
    /// Action of the controller, in CamelCase.
    pub action: &'static str,
    /// Human-readable description.
    pub note: String,
}

impl Recorder {
    /// Creates a recorder of this controller on this host.
    #[must_use]
    pub fn new(registry: Registry, controller: &'static str, hostname: &str) -> Self {
        let instance = format!("{controller}-{hostname}");
        Self { registry, controller, instance, reported: Arc::default() }
    }

    /// Records a warning about an object; a repeated warning about the same object is written once.
    pub async fn warn(&self, about: &StoredObject, warning: &Warning) {
        let key = format!("{}/{}/{}", about.uid(), warning.reason, warning.note);
        {
            let mut reported = self.reported.lock();
            if reported.len() >= MAX_REPORTED {
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
        set_regarding(&mut event, about);
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

/// Sets the object that an event refers to, and places the event in the namespace of that object.
pub(crate) fn set_regarding(event: &mut Object, about: &Object) {
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
