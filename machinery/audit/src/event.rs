//! Audit event of a request at one stage.

mod json;
mod legacy;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use portico_machinery::status::Details;
use portico_machinery::{RequestInfo, Status, UserInfo};

use crate::level::{Level, Stage};

/// Size of the user agent in an event.
///
/// Limit (Audit, bytes): it is truncated.
const MAX_USER_AGENT_BYTES: usize = 1024;
/// Suffix of a User-Agent that was truncated.
const TRUNCATION_SUFFIX: &str = "...TRUNCATED";
/// Annotation of an event whose objects were removed because they are too large.
const TRUNCATED_ANNOTATION: &str = "audit.k8s.io/truncated";

/// An event of `audit.k8s.io/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Amount of recorded data.
    pub level: Level,
    /// Audit ID of the request.
    pub audit_id: String,
    /// Stage at which the event is generated.
    pub stage: Stage,
    /// Path and query as the client sent them.
    pub request_uri: String,
    /// Verb; the HTTP method in lower case for a non-resource request.
    pub verb: String,
    /// Authenticated user; empty before authentication.
    pub user: Arc<UserInfo>,
    /// Impersonated user.
    pub impersonated_user: Option<Arc<UserInfo>>,
    /// Verb that allowed the impersonation; empty for `impersonate`.
    pub impersonation_constraint: String,
    /// Addresses of the client and of proxies, see [`crate::source_ips()`].
    pub source_ips: Vec<String>,
    /// User agent that the client reported.
    pub user_agent: String,
    /// Object of the request; `None` for a non-resource request.
    pub object_ref: Option<ObjectReference>,
    /// Result of the request.
    pub response_status: Option<ResponseStatus>,
    /// Request body as JSON.
    pub request_object: Option<Bytes>,
    /// Response body as JSON.
    pub response_object: Option<Bytes>,
    /// Time at which the request arrived.
    pub request_received: Timestamp,
    /// Time at which the stage was reached.
    pub stage_time: Timestamp,
    /// Annotations that plugins of the request chain added.
    pub annotations: BTreeMap<String, String>,
}

/// Reference to the object of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectReference {
    /// Plural resource.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    /// UID, if the request contains one.
    pub uid: String,
    /// API group.
    pub api_group: String,
    /// API version.
    pub api_version: String,
    /// Resource version, if the request contains one.
    pub resource_version: String,
    pub subresource: String,
}

/// Result of a request: the code alone, or the content of the Status in the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseStatus {
    /// `Success` or `Failure`.
    pub status: String,
    /// Human-readable message.
    pub message: String,
    /// Reason in one word.
    pub reason: String,
    /// Details of the Status.
    pub details: Option<Details>,
    /// HTTP status code.
    pub code: u16,
}

impl ObjectReference {
    /// Returns the reference in the request line; `None` for a non-resource request.
    #[must_use]
    pub fn from_request(request: &RequestInfo) -> Option<Self> {
        request.is_resource_request.then(|| Self {
            resource: request.resource.clone(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            api_group: request.api_group.clone(),
            api_version: request.api_version.clone(),
            subresource: request.subresource.clone(),
            ..Self::default()
        })
    }

    /// Fills in fields that the request line does not contain, from the object in the request body.
    pub fn complete(&mut self, namespace: &str, name: &str, uid: &str, resource_version: &str) {
        let fields = [&mut self.namespace, &mut self.name, &mut self.uid, &mut self.resource_version];
        for (field, value) in fields.into_iter().zip([namespace, name, uid, resource_version]) {
            if field.is_empty() {
                value.clone_into(field);
            }
        }
    }
}

impl From<&Status> for ResponseStatus {
    fn from(status: &Status) -> Self {
        Self {
            status: status.status.clone(),
            message: status.message.clone(),
            reason: status.reason.clone(),
            details: status.details.clone(),
            code: status.code,
        }
    }
}

impl Event {
    /// Creates the event of a request that has just arrived.
    #[must_use]
    pub fn new(level: Level, audit_id: impl Into<String>, request_received: Timestamp) -> Self {
        Self {
            level,
            audit_id: audit_id.into(),
            stage: Stage::RequestReceived,
            request_uri: String::new(),
            verb: String::new(),
            user: Arc::default(),
            impersonated_user: None,
            impersonation_constraint: String::new(),
            source_ips: Vec::new(),
            user_agent: String::new(),
            object_ref: None,
            response_status: None,
            request_object: None,
            response_object: None,
            request_received,
            stage_time: request_received,
            annotations: BTreeMap::new(),
        }
    }

    /// Sets the user agent; a long text is truncated.
    pub fn set_user_agent(&mut self, agent: &[u8]) {
        let prefix = agent.get(..MAX_USER_AGENT_BYTES).filter(|_| agent.len() > MAX_USER_AGENT_BYTES);
        self.user_agent = String::from_utf8_lossy(prefix.unwrap_or(agent)).into_owned();
        if prefix.is_some() {
            self.user_agent.push_str(TRUNCATION_SUFFIX);
        }
    }

    /// Adds an annotation. An existing value is kept; returns false if it differs.
    pub fn annotate(&mut self, key: impl Into<String>, value: impl Into<String>) -> bool {
        let value = value.into();
        *self.annotations.entry(key.into()).or_insert_with(|| value.clone()) == value
    }

    /// Returns the event without objects, with the annotation `audit.k8s.io/truncated`.
    #[must_use]
    pub fn truncated(&self) -> Self {
        let mut event = self.clone();
        (event.request_object, event.response_object) = (None, None);
        event.annotations.insert(TRUNCATED_ANNOTATION.to_owned(), "true".to_owned());
        event
    }

    /// Adds the annotation for an object that was omitted because it is too large.
    pub fn mark_truncated(&mut self) {
        self.annotate(TRUNCATED_ANNOTATION, "true");
    }
}
