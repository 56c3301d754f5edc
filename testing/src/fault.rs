//! Faults: their effect, the requests they match, and how often they occur.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::requests::{FAULTS, send};

/// A fault to set with [`TestServer::fault`](crate::TestServer::fault). By default it affects every request for a resource,
/// until it is removed.
///
/// ```
/// use portico_testing::Fault;
///
/// // Each watch of pods ends after its third event.
/// let cut = Fault::cut_watch().after_events(3).resource("", "pods");
/// // The next status update of a controller is written, but the controller gets no response.
/// let lost = Fault::drop_answer().resource("apps", "deployments").subresource("status").user_agent("my-controller").times(1);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    #[serde(rename = "match")]
    requests: RequestMatch,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u32>,
    fault: FaultKind,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestMatch {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    verbs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subresource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum FaultKind {
    Latency { milliseconds: u64 },
    Status(StatusResponse),
    DropRequest {},
    DropAnswer {},
    CutWatch(WatchEnd),
    ExpireWatch(WatchEnd),
    StaleReads(EarlierRead),
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusResponse {
    code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u32>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WatchEnd {
    #[serde(skip_serializing_if = "Option::is_none")]
    after_events: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_milliseconds: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    clean: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct EarlierRead {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Fault {
    fn new(fault: FaultKind) -> Self {
        Self { requests: RequestMatch::default(), times: None, fault }
    }

    /// Delays requests.
    #[must_use]
    pub fn latency(delay: Duration) -> Self {
        Self::new(FaultKind::Latency { milliseconds: milliseconds(delay) })
    }

    /// Refuses requests with this HTTP status code: 409 is a conflict, 410 expired, also 429, 500, 503 and others.
    #[must_use]
    pub fn status(code: u16) -> Self {
        Self::new(FaultKind::Status(StatusResponse { code, ..StatusResponse::default() }))
    }

    /// Refuses requests with 409, as if another client had written first.
    #[must_use]
    pub fn conflict() -> Self {
        Self::status(409)
    }

    /// Refuses requests with 410, as if the revision or continue token were too old.
    #[must_use]
    pub fn expired() -> Self {
        Self::status(410)
    }

    /// Refuses requests with 429 and a `Retry-After` header.
    #[must_use]
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        let retry_after_seconds = Some(retry_after_seconds);
        Self::new(FaultKind::Status(StatusResponse {
            code: 429,
            retry_after_seconds,
            ..StatusResponse::default()
        }))
    }

    /// Refuses requests with 503.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::status(503)
    }

    /// Closes the connection before the request is handled.
    #[must_use]
    pub fn drop_request() -> Self {
        Self::new(FaultKind::DropRequest {})
    }

    /// Handles the request, then closes the connection instead of responding.
    #[must_use]
    pub fn drop_answer() -> Self {
        Self::new(FaultKind::DropAnswer {})
    }

    /// Ends watches, including open ones: at once, unless [`Fault::after_events`] or [`Fault::after`] is set.
    #[must_use]
    pub fn cut_watch() -> Self {
        Self::new(FaultKind::CutWatch(WatchEnd::default()))
    }

    /// Ends watches, including open ones, with an ERROR event of 410, so that clients list again.
    #[must_use]
    pub fn expire_watch() -> Self {
        Self::new(FaultKind::ExpireWatch(WatchEnd::default()))
    }

    /// Serves gets and lists at the revision at which the fault is set, and pauses watches.
    #[must_use]
    pub fn stale_reads() -> Self {
        Self::new(FaultKind::StaleReads(EarlierRead::default()))
    }

    /// Serves gets and lists at this revision, and pauses watches.
    #[must_use]
    pub fn stale_reads_at(resource_version: impl Into<String>) -> Self {
        Self::new(FaultKind::StaleReads(EarlierRead { resource_version: Some(resource_version.into()) }))
    }

    /// Reason of a refusal, for codes that have several.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        if let FaultKind::Status(refusal) = &mut self.fault {
            refusal.reason = Some(reason.into());
        }
        self
    }

    /// Message of a refusal.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        if let FaultKind::Status(refusal) = &mut self.fault {
            refusal.message = Some(message.into());
        }
        self
    }

    fn with_watch_end(mut self, change: impl FnOnce(&mut WatchEnd)) -> Self {
        if let FaultKind::CutWatch(end) | FaultKind::ExpireWatch(end) = &mut self.fault {
            change(end);
        }
        self
    }

    /// Ends watches after this number of events, bookmarks included.
    #[must_use]
    pub fn after_events(self, events: u64) -> Self {
        self.with_watch_end(|end| end.after_events = Some(events))
    }

    /// Ends watches after this time.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        self.with_watch_end(|end| end.after_milliseconds = Some(milliseconds(time)))
    }

    /// Ends watches as a timeout does, instead of breaking the connection.
    #[must_use]
    pub fn clean(self) -> Self {
        self.with_watch_end(|end| end.clean = true)
    }

    /// Matches requests for this resource: API group (empty for the core group) and plural.
    #[must_use]
    pub fn resource(mut self, api_group: impl Into<String>, plural: impl Into<String>) -> Self {
        (self.requests.api_group, self.requests.resource) = (Some(api_group.into()), Some(plural.into()));
        self
    }

    /// Matches requests for this subresource; empty matches the object itself only.
    #[must_use]
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.requests.subresource = Some(subresource.into());
        self
    }

    /// Matches requests with these verbs: get, list, watch, create, update, patch, delete, deletecollection.
    #[must_use]
    pub fn verbs<V: Into<String>>(mut self, verbs: impl IntoIterator<Item = V>) -> Self {
        self.requests.verbs = verbs.into_iter().map(Into::into).collect();
        self
    }

    /// Matches requests in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.requests.namespace = Some(namespace.into());
        self
    }

    /// Matches requests for the object with this name. Create requests have none.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.requests.name = Some(name.into());
        self
    }

    /// Matches requests of this user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.requests.user = Some(user.into());
        self
    }

    /// Matches requests whose user agent starts with this prefix.
    #[must_use]
    pub fn user_agent(mut self, prefix: impl Into<String>) -> Self {
        self.requests.user_agent = Some(prefix.into());
        self
    }

    /// Limits the number of requests that the fault affects.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }
}

/// A fault that is set on the server. It stays until it is removed or the server stops, also if this handle is dropped.
pub struct SetFault {
    client: kube::Client,
    path: String,
}

#[derive(Deserialize)]
pub(crate) struct FaultStatus {
    id: String,
    hits: u32,
}

impl SetFault {
    pub(crate) fn new(client: kube::Client, status: &FaultStatus) -> Self {
        Self { client, path: format!("{FAULTS}/{}", status.id) }
    }

    /// Returns the number of requests that the fault has affected.
    ///
    /// # Errors
    /// Returns [`Error::Client`] if the request fails.
    pub async fn hits(&self) -> Result<u32, Error> {
        send(&self.client, "GET", &self.path, Vec::new()).await.map(|listed: FaultStatus| listed.hits)
    }

    /// Removes the fault. Returns the number of requests that it has affected.
    ///
    /// # Errors
    /// Returns [`Error::Client`] if the request fails.
    pub async fn remove(self) -> Result<u32, Error> {
        send(&self.client, "DELETE", &self.path, Vec::new()).await.map(|listed: FaultStatus| listed.hits)
    }
}
