//! How the folder's requests are answered.

use futures::future::BoxFuture;
use portico_machinery::{Reason, Status};
use portico_registry::{Answer, Call, Registry, ServedResource, Target};

/// Who answers requests as the API does: the registry, or somebody in front of it who records them.
pub trait Requests: Send + Sync {
    /// Answers one.
    fn serve(&self, call: Call) -> BoxFuture<'_, Answer>;
}

impl Requests for Registry {
    fn serve(&self, call: Call) -> BoxFuture<'_, Answer> {
        Box::pin(Registry::serve(self, call))
    }
}

/// An object in a version that requests may use.
pub(crate) fn target(served: &ServedResource, namespace: &str, name: &str) -> Target {
    Target {
        group: served.resource.group.clone(),
        version: served.info.gvk.version.clone(),
        resource: served.resource.resource.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..Target::default()
    }
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// For people.
    pub(crate) message: String,
    /// Whether it may go without anybody mending the folder.
    pub(crate) passes: bool,
    /// The code of the answer; 0 where there is none.
    pub(crate) code: u16,
}

impl Refusal {
    /// As long as nobody mends something.
    pub(crate) fn lasting(message: impl Into<String>) -> Self {
        Self { message: message.into(), passes: false, code: 0 }
    }

    /// For a while.
    pub(crate) fn passing(message: impl Into<String>) -> Self {
        Self { message: message.into(), passes: true, code: 0 }
    }
}

impl From<&Status> for Refusal {
    fn from(status: &Status) -> Self {
        let busy = matches!(
            status.reason(),
            Reason::Conflict
                | Reason::Timeout
                | Reason::ServerTimeout
                | Reason::TooManyRequests
                | Reason::ServiceUnavailable
        );
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let ends = causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating");
        // What controllers have yet to write into a new namespace.
        let waits = ["error looking up service account", "status unknown for quota"];
        let waits = waits.iter().any(|text| status.message.contains(text));
        Self { message: status.message.clone(), passes: busy || ends || waits, code: status.code }
    }
}

/// Why a request was refused.
pub(crate) fn refusal(answer: &Answer) -> Result<(), Refusal> {
    match &answer.status {
        Some(status) if status.code >= 300 => Err(Refusal::from(&**status)),
        None if answer.code >= 300 => {
            Err(Refusal::lasting(format!("unexpected response code {}", answer.code)))
        }
        _ => Ok(()),
    }
}
