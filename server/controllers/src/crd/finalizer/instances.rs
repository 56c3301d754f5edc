//! Deletes instances of a definition through the registry, so that their finalizers and owner references apply.

use std::collections::BTreeSet;

use portico_machinery::{GroupResource, Reason, Status, aggregate};
use portico_registry::condition::Condition;
use portico_registry::{Context, DeleteOptions, ListOptions, Registry};

use super::decision::{CHECK_FAILED, FAILED, terminating_condition};

/// Failure to delete all instances, with upstream's reasons and messages.
#[derive(Debug)]
pub(super) struct DeletionFailure {
    reason: &'static str,
    message: String,
}

impl DeletionFailure {
    fn list_failed(status: &Status) -> Self {
        Self { reason: FAILED, message: format!("could not list instances: {}", status.message) }
    }

    fn deletes_failed(errors: &BTreeSet<String>) -> Self {
        Self { reason: FAILED, message: format!("could not issue all deletes: {}", aggregate(errors)) }
    }

    /// Returns the failure after the timeout.
    pub(super) fn timed_out() -> Self {
        let message = "could not confirm zero CustomResources remaining: context deadline exceeded";
        Self { reason: CHECK_FAILED, message: message.to_owned() }
    }

    /// Converts the failure to the condition of the definition.
    pub(super) fn condition(&self) -> Condition {
        terminating_condition("True", self.reason, &*self.message)
    }

    /// Converts the failure to a status for the log.
    pub(super) fn into_status(self) -> Box<Status> {
        Box::new(Status::internal(self.message))
    }
}

/// Deletes all instances, namespace by namespace, so that a failure in one does not affect the others. Returns true if no
/// instance is left.
pub(super) async fn delete_all(
    registry: &Registry,
    resource: &GroupResource,
) -> Result<bool, DeletionFailure> {
    let all = match registry.list(resource, "", &ListOptions::default()).await {
        Ok(listed) => listed.items,
        Err(status) if status.reason() == Reason::NotFound => {
            return require_none_stored(registry, resource).await;
        }
        Err(status) => return Err(DeletionFailure::list_failed(&status)),
    };
    let (context, options) = (Context::system("system:apiserver"), DeleteOptions::default());
    let mut errors = BTreeSet::new();
    for instances in all.chunk_by(|a, b| a.namespace() == b.namespace()) {
        let namespace = instances[0].namespace();
        let deleted = registry.delete_collection(&context, resource, namespace, instances, &options).await;
        errors.extend(deleted.err().map(|status| status.message));
    }
    if !errors.is_empty() {
        return Err(DeletionFailure::deletes_failed(&errors));
    }
    are_gone(registry, resource).await
}

/// Returns true if no instance is left.
pub(super) async fn are_gone(registry: &Registry, resource: &GroupResource) -> Result<bool, DeletionFailure> {
    let one = ListOptions { limit: 1, ..ListOptions::default() };
    match registry.list(resource, "", &one).await {
        Ok(listed) => Ok(listed.items.is_empty()),
        Err(status) if status.reason() == Reason::NotFound => require_none_stored(registry, resource).await,
        Err(status) => Err(DeletionFailure::list_failed(&status)),
    }
}

/// Checks the store for objects of a resource that is not served. Returns true if there are none, an error otherwise.
async fn require_none_stored(registry: &Registry, resource: &GroupResource) -> Result<bool, DeletionFailure> {
    let counts = registry.object_counts().await.map_err(|status| DeletionFailure::list_failed(&status))?;
    if counts.iter().all(|(stored, _)| stored != resource) {
        return Ok(true);
    }
    Err(DeletionFailure::list_failed(&Status::internal(format!("{resource} is not served"))))
}
