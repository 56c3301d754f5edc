//! Faults: what happens, to which requests, and how often.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::asking::{FAULTS, ask};

/// What is to happen: by default to all requests for resources, and until it is removed.
///
/// ```
/// use portico_testing::Fault;
///
/// // The third event of each watch of pods is its last.
/// let cut = Fault::cut_watch().after_events(3).resource("", "pods");
/// // A controller's next status update is written, and it never learns of it.
/// let lost = Fault::drop_answer().resource("apps", "deployments").subresource("status").user_agent("my-controller").times(1);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    #[serde(rename = "match")]
    requests: Requests,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u32>,
    fault: Kind,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Requests {
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
enum Kind {
    Latency { milliseconds: u64 },
    Status(Refusal),
    DropRequest {},
    DropAnswer {},
    CutWatch(End),
    ExpireWatch(End),
    StaleReads(Earlier),
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Refusal {
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
struct End {
    #[serde(skip_serializing_if = "Option::is_none")]
    after_events: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_milliseconds: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    clean: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Earlier {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Fault {
    fn new(fault: Kind) -> Self {
        Self { requests: Requests::default(), times: None, fault }
    }

    /// Requests are handled later.
    #[must_use]
    pub fn latency(by: Duration) -> Self {
        Self::new(Kind::Latency { milliseconds: milliseconds(by) })
    }

    /// Requests are refused with this HTTP code: 409 is a conflict, 410 expired, 429, 500, 503 and so on.
    #[must_use]
    pub fn status(code: u16) -> Self {
        Self::new(Kind::Status(Refusal { code, ..Refusal::default() }))
    }

    /// 409: somebody else was faster.
    #[must_use]
    pub fn conflict() -> Self {
        Self::status(409)
    }

    /// 410: the revision or the continue token is too old.
    #[must_use]
    pub fn expired() -> Self {
        Self::status(410)
    }

    /// 429, and when to come back.
    #[must_use]
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        let retry_after_seconds = Some(retry_after_seconds);
        Self::new(Kind::Status(Refusal { code: 429, retry_after_seconds, ..Refusal::default() }))
    }

    /// 503.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::status(503)
    }

    /// The connection breaks, and nothing was done.
    #[must_use]
    pub fn drop_request() -> Self {
        Self::new(Kind::DropRequest {})
    }

    /// What is asked for is done, and the connection breaks in the place of the answer.
    #[must_use]
    pub fn drop_answer() -> Self {
        Self::new(Kind::DropAnswer {})
    }

    /// Watches break off, open ones, too: at once by default.
    #[must_use]
    pub fn cut_watch() -> Self {
        Self::new(Kind::CutWatch(End::default()))
    }

    /// Watches, open ones, too, end with an event that says 410, so that clients list again.
    #[must_use]
    pub fn expire_watch() -> Self {
        Self::new(Kind::ExpireWatch(End::default()))
    }

    /// Gets and lists answer as of the moment in which this is set, and watches stand still.
    #[must_use]
    pub fn stale_reads() -> Self {
        Self::new(Kind::StaleReads(Earlier::default()))
    }

    /// Gets and lists answer as of this revision, and watches stand still.
    #[must_use]
    pub fn stale_reads_at(resource_version: impl Into<String>) -> Self {
        Self::new(Kind::StaleReads(Earlier { resource_version: Some(resource_version.into()) }))
    }

    /// Of a refusal: its reason, where the code has several.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        if let Kind::Status(refusal) = &mut self.fault {
            refusal.reason = Some(reason.into());
        }
        self
    }

    /// Of a refusal: its words.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        if let Kind::Status(refusal) = &mut self.fault {
            refusal.message = Some(message.into());
        }
        self
    }

    fn end(mut self, change: impl FnOnce(&mut End)) -> Self {
        if let Kind::CutWatch(end) | Kind::ExpireWatch(end) = &mut self.fault {
            change(end);
        }
        self
    }

    /// Of a watch that ends: after so many events, bookmarks among them.
    #[must_use]
    pub fn after_events(self, events: u64) -> Self {
        self.end(|end| end.after_events = Some(events))
    }

    /// Of a watch that ends: after so long.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        self.end(|end| end.after_milliseconds = Some(milliseconds(time)))
    }

    /// Of a watch that is cut: it ends as at its timeout, rather than with its connection.
    #[must_use]
    pub fn clean(self) -> Self {
        self.end(|end| end.clean = true)
    }

    /// To requests for this resource, by group (empty for core) and plural.
    #[must_use]
    pub fn resource(mut self, api_group: impl Into<String>, plural: impl Into<String>) -> Self {
        (self.requests.api_group, self.requests.resource) = (Some(api_group.into()), Some(plural.into()));
        self
    }

    /// To requests for this subresource; empty for the object itself alone.
    #[must_use]
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.requests.subresource = Some(subresource.into());
        self
    }

    /// To requests with these verbs: get, list, watch, create, update, patch, delete, deletecollection.
    #[must_use]
    pub fn verbs<V: Into<String>>(mut self, verbs: impl IntoIterator<Item = V>) -> Self {
        self.requests.verbs = verbs.into_iter().map(Into::into).collect();
        self
    }

    /// To requests in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.requests.namespace = Some(namespace.into());
        self
    }

    /// To requests for the object of this name. Requests to create have none.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.requests.name = Some(name.into());
        self
    }

    /// To requests of this user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.requests.user = Some(user.into());
        self
    }

    /// To requests of clients whose user agent begins so.
    #[must_use]
    pub fn user_agent(mut self, beginning: impl Into<String>) -> Self {
        self.requests.user_agent = Some(beginning.into());
        self
    }

    /// So often.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }
}

/// A fault that is set. Dropping it changes nothing: it ends with its server, or when it is removed.
pub struct SetFault {
    client: kube::Client,
    path: String,
}

#[derive(Deserialize)]
pub(crate) struct Listed {
    id: String,
    hits: u32,
}

impl SetFault {
    pub(crate) fn of(client: kube::Client, listed: &Listed) -> Self {
        Self { client, path: format!("{FAULTS}/{}", listed.id) }
    }

    /// To how many requests it has happened.
    ///
    /// # Errors
    /// [`Error::Client`]
    pub async fn hits(&self) -> Result<u32, Error> {
        ask(&self.client, "GET", &self.path, Vec::new()).await.map(|listed: Listed| listed.hits)
    }

    /// Removes it; gives back to how many requests it has happened.
    ///
    /// # Errors
    /// [`Error::Client`]
    pub async fn remove(self) -> Result<u32, Error> {
        ask(&self.client, "DELETE", &self.path, Vec::new()).await.map(|listed: Listed| listed.hits)
    }
}
