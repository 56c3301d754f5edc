//! Sends requests of the folder, and classifies their errors.

use futures::future::BoxFuture;
use portico_machinery::{Reason, Status};
use portico_registry::{Answer, Call, Registry, ServedResource, Target};

/// Server of API requests: the registry, or a layer in front of it that records requests.
pub trait Requests: Send + Sync {
    /// Serves a request.
    fn serve(&self, call: Call) -> BoxFuture<'_, Answer>;
}

impl Requests for Registry {
    fn serve(&self, call: Call) -> BoxFuture<'_, Answer> {
        Box::pin(Registry::serve(self, call))
    }
}

/// Returns the target of an object in its served version.
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

/// Refusal of a request or document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Human-readable message.
    pub(crate) message: String,
    /// True if a retry may succeed without a change of the folder.
    pub(crate) is_temporary: bool,
    /// Status code of the response; 0 if there was none.
    pub(crate) code: u16,
}

impl Refusal {
    /// Creates a refusal that lasts until the folder is changed.
    pub(crate) fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_temporary: false, code: 0 }
    }

    /// Creates a temporary refusal.
    pub(crate) fn temporary(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_temporary: true, code: 0 }
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
        // Objects that controllers have yet to write into a new namespace.
        let waits = ["error looking up service account", "status unknown for quota"];
        let waits = waits.iter().any(|text| status.message.contains(text));
        Self { message: status.message.clone(), is_temporary: busy || ends || waits, code: status.code }
    }
}

/// Returns the refusal if the response is an error.
pub(crate) fn check_answer(answer: &Answer) -> Result<(), Refusal> {
    match &answer.status {
        Some(status) if status.code >= 300 => Err(Refusal::from(&**status)),
        None if answer.code >= 300 => {
            Err(Refusal::permanent(format!("unexpected response code {}", answer.code)))
        }
        _ => Ok(()),
    }
}
