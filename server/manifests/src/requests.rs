//! How the folder's requests are answered.

use futures::future::BoxFuture;
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

/// Why a request was refused.
pub(crate) fn refusal(answer: &Answer) -> Result<(), String> {
    match &answer.status {
        Some(status) if status.code >= 300 => Err(status.message.clone()),
        None if answer.code >= 300 => Err(format!("the answer is {}", answer.code)),
        _ => Ok(()),
    }
}
