//! An event: what the audit log says of a request at one stage.

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
/// What a User-Agent that was cut ends with.
const CUT: &str = "...TRUNCATED";
/// The annotation of an event that lacks objects because they are too large.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// An event of `audit.k8s.io/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// How much of the request is recorded.
    pub level: Level,
    /// The request's id.
    pub audit_id: String,
    /// The moment.
    pub stage: Stage,
    /// Path and query as they were sent.
    pub request_uri: String,
    /// The verb; the method in lower case for what is no resource.
    pub verb: String,
    /// Who asks; nobody before authentication.
    pub user: Arc<UserInfo>,
    /// Whom they impersonate.
    pub impersonated_user: Option<Arc<UserInfo>>,
    /// The verb that allowed the impersonation; empty for `impersonate`.
    pub impersonation_constraint: String,
    /// Where the request comes from, by way of whom.
    pub source_ips: Vec<String>,
    /// The client program, as it says.
    pub user_agent: String,
    /// What is asked for; nothing for what is no resource.
    pub object_ref: Option<ObjectReference>,
    /// How it ended.
    pub response_status: Option<ResponseStatus>,
    /// What was sent: JSON.
    pub request_object: Option<Bytes>,
    /// What was answered: JSON.
    pub response_object: Option<Bytes>,
    /// When the request arrived.
    pub request_received: Timestamp,
    /// When the stage began.
    pub stage_time: Timestamp,
    /// What others note of the request.
    pub annotations: BTreeMap<String, String>,
}

/// What a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectReference {
    /// The plural resource.
    pub resource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid, when the request says one.
    pub uid: String,
    /// The group.
    pub api_group: String,
    /// The version.
    pub api_version: String,
    /// The revision, when the request says one.
    pub resource_version: String,
    /// The subresource.
    pub subresource: String,
}

/// How a request ended: the code alone, or what the Status says that was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseStatus {
    /// `Success` or `Failure`.
    pub status: String,
    /// In words.
    pub message: String,
    /// In one word.
    pub reason: String,
    /// What it is about.
    pub details: Option<Details>,
    /// The HTTP code.
    pub code: u16,
}

impl ObjectReference {
    /// What the request line says; nothing for what is no resource.
    #[must_use]
    pub fn of(request: &RequestInfo) -> Option<Self> {
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

    /// Fills in fields of the object that was sent, where the request line has none.
    pub fn complete(&mut self, namespace: &str, name: &str, uid: &str, resource_version: &str) {
        let known = [&mut self.namespace, &mut self.name, &mut self.uid, &mut self.resource_version];
        for (known, sent) in known.into_iter().zip([namespace, name, uid, resource_version]) {
            if known.is_empty() {
                sent.clone_into(known);
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
    /// An event of a request that has just arrived.
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

    /// The client program; a long text is cut.
    pub fn set_user_agent(&mut self, agent: &[u8]) {
        let cut = agent.get(..MAX_USER_AGENT_BYTES).filter(|_| agent.len() > MAX_USER_AGENT_BYTES);
        self.user_agent = String::from_utf8_lossy(cut.unwrap_or(agent)).into_owned();
        if cut.is_some() {
            self.user_agent.push_str(CUT);
        }
    }

    /// Notes a value. One that is known stays; false when that is another.
    pub fn annotate(&mut self, key: impl Into<String>, value: impl Into<String>) -> bool {
        let value = value.into();
        *self.annotations.entry(key.into()).or_insert_with(|| value.clone()) == value
    }

    /// The same without objects, which says so.
    #[must_use]
    pub fn truncated(&self) -> Self {
        let mut event = self.clone();
        (event.request_object, event.response_object) = (None, None);
        event.annotations.insert(TRUNCATED.to_owned(), "true".to_owned());
        event
    }

    /// Notes that an object is left out because it is too large.
    pub fn note_truncated(&mut self) {
        self.annotate(TRUNCATED, "true");
    }
}
