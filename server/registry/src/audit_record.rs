//! Data of a call for its audit event beyond the request line, recorded while the call is processed.

use bytes::Bytes;
use parking_lot::Mutex;
use portico_machinery::Object;
use portico_schema::Schema;

/// Amount of recorded data; each level includes the previous ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditDetail {
    #[default]
    Nothing,
    /// Identity of the object in the request.
    Reference,
    /// Body of the request.
    Request,
    /// Bodies of the request and of the response.
    RequestResponse,
}

/// Recorded data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditRecord {
    /// Namespace of the object in the request.
    pub namespace: String,
    /// Name of the object in the request.
    pub name: String,
    /// UID of the object in the request, if the body contains it.
    pub uid: String,
    /// Resource version of the object in the request, if the body contains it.
    pub resource_version: String,
    /// Request body: JSON, or a patch as received.
    pub request: Bytes,
    /// Response as JSON, if the response itself has another encoding.
    pub response: Bytes,
}

/// Kind and version of delete options, which upstream records in their internal version.
const DELETE_OPTIONS: (&str, &str) = ("DeleteOptions", "meta.k8s.io/__internal");

/// Collects the data that an audit detail requires.
pub(crate) struct Recorder {
    detail: AuditDetail,
    record: Mutex<AuditRecord>,
}

impl Recorder {
    pub(crate) fn new(detail: AuditDetail) -> Self {
        Self { detail, record: Mutex::default() }
    }

    pub(crate) fn take(&self) -> AuditRecord {
        std::mem::take(&mut self.record.lock())
    }

    /// True if the response is required as JSON.
    pub(crate) fn wants_response(&self) -> bool {
        self.detail == AuditDetail::RequestResponse
    }

    /// Records the object of a request with its defaults, which `set_defaults` sets, as upstream decodes it.
    pub(crate) fn object(&self, object: &Object, schema: &Schema, set_defaults: impl FnOnce(&mut Object)) {
        if self.detail == AuditDetail::Nothing {
            return;
        }
        let request = (self.detail >= AuditDetail::Request).then(|| {
            let mut defaulted = object.clone();
            set_defaults(&mut defaulted);
            schema.normalize(&mut defaulted);
            Bytes::from(defaulted.to_json())
        });
        let mut record = self.record.lock();
        object.namespace().clone_into(&mut record.namespace);
        object.name().clone_into(&mut record.name);
        object.at(&["metadata", "uid"]).str().clone_into(&mut record.uid);
        object.at(&["metadata", "resourceVersion"]).str().clone_into(&mut record.resource_version);
        record.request = request.unwrap_or_default();
    }

    /// Records the patch of a request.
    pub(crate) fn patch(&self, patch: &Bytes) {
        if self.detail >= AuditDetail::Request {
            self.record.lock().request = patch.clone();
        }
    }

    /// Records the options of a delete.
    pub(crate) fn delete_options(&self, mut options: Object, schema: &Schema) {
        if self.detail >= AuditDetail::Request {
            options.set(&["kind"], DELETE_OPTIONS.0);
            options.set(&["apiVersion"], DELETE_OPTIONS.1);
            schema.normalize(&mut options);
            self.record.lock().request = options.to_json().into();
        }
    }

    /// True if a body must be decoded only to be recorded.
    pub(crate) fn wants_request(&self) -> bool {
        self.detail >= AuditDetail::Request
    }

    /// Records the response as JSON.
    pub(crate) fn response(&self, json: Bytes) {
        self.record.lock().response = json;
    }
}
