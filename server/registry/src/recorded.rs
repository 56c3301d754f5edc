//! Annotations of a call's audit event, besides what its request line shows: noted while it is answered.

use bytes::Bytes;
use parking_lot::Mutex;
use portico_machinery::Object;
use portico_schema::Schema;

/// How much is noted. Each has what the ones before it have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recorded {
    /// Nothing.
    #[default]
    Nothing,
    /// Which object was sent.
    Reference,
    /// And what was sent.
    Sent,
    /// And what was answered.
    Everything,
}

/// What was noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The namespace in the object that was sent.
    pub namespace: String,
    /// See [`Record::namespace`].
    pub name: String,
    /// See [`Record::namespace`].
    pub uid: String,
    /// See [`Record::namespace`].
    pub resource_version: String,
    /// What was sent: JSON, or a patch as it came.
    pub request: Bytes,
    /// What was answered as JSON, where the answer itself is not.
    pub response: Bytes,
}

/// Upstream encodes delete options as they are inside.
const DELETE_OPTIONS: (&str, &str) = ("DeleteOptions", "meta.k8s.io/__internal");

/// Notes what is wanted, and nothing else.
pub(crate) struct Recorder {
    wanted: Recorded,
    record: Mutex<Record>,
}

impl Recorder {
    pub(crate) fn new(wanted: Recorded) -> Self {
        Self { wanted, record: Mutex::default() }
    }

    pub(crate) fn take(&self) -> Record {
        std::mem::take(&mut self.record.lock())
    }

    /// Whether what is answered must be here as JSON.
    pub(crate) fn wants_response(&self) -> bool {
        self.wanted == Recorded::Everything
    }

    /// An object was sent: it is noted with its defaults, which `complete` sets, as upstream decodes it.
    pub(crate) fn object(&self, object: &Object, schema: &Schema, complete: impl FnOnce(&mut Object)) {
        if self.wanted == Recorded::Nothing {
            return;
        }
        let request = (self.wanted >= Recorded::Sent).then(|| {
            let mut whole = object.clone();
            complete(&mut whole);
            schema.normalise(&mut whole);
            Bytes::from(whole.to_json())
        });
        let mut record = self.record.lock();
        object.namespace().clone_into(&mut record.namespace);
        object.name().clone_into(&mut record.name);
        object.at(&["metadata", "uid"]).str().clone_into(&mut record.uid);
        object.at(&["metadata", "resourceVersion"]).str().clone_into(&mut record.resource_version);
        record.request = request.unwrap_or_default();
    }

    /// A patch was sent.
    pub(crate) fn patch(&self, patch: &Bytes) {
        if self.wanted >= Recorded::Sent {
            self.record.lock().request = patch.clone();
        }
    }

    /// Options of a delete were sent.
    pub(crate) fn delete_options(&self, mut options: Object, schema: &Schema) {
        if self.wanted >= Recorded::Sent {
            options.set(&["kind"], DELETE_OPTIONS.0);
            options.set(&["apiVersion"], DELETE_OPTIONS.1);
            schema.normalise(&mut options);
            self.record.lock().request = options.to_json().into();
        }
    }

    /// Whether a body must be decoded just to be noted.
    pub(crate) fn wants_request(&self) -> bool {
        self.wanted >= Recorded::Sent
    }

    /// What is answered, as JSON.
    pub(crate) fn response(&self, json: Bytes) {
        self.record.lock().response = json;
    }
}
