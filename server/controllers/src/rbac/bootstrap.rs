//! Bootstrap policy, reconciled at the start (hook `rbac/bootstrap-roles`).
//!
//! Missing parts are added and additions by users are kept; the annotation `rbac.authorization.kubernetes.io/autoupdate:
//! "false"` protects an object from all changes.

mod decision;
mod policy_data;

use std::collections::HashMap;

use futures::future::join_all;
use portico_machinery::rbac::{Key, Resource};
use portico_machinery::{GroupResource, GroupVersionKind, Object, Reason, Status};
use portico_registry::{
    Context, CreateOptions, DeleteOptions, ListOptions, ObjectPart, Preconditions, Registry, StoredObject,
    UpdateOptions,
};

use crate::periodic::until_done;
use crate::write_result::skip_unreadable;
pub use decision::PolicyStep;
pub use policy_data::{InvalidPolicyFile, PolicyContent, PolicyObject, policy_objects};

/// Namespaces that contain roles of the policy.
const NAMESPACES: [&str; 2] = ["kube-system", "kube-public"];

/// Reconciles the policy, and returns the revision at which it is complete; retries for half a minute.
///
/// # Errors
/// Returns the last failure.
pub async fn reconcile(registry: &Registry) -> Result<i64, String> {
    let policy = policy_objects().map_err(|e| e.to_string())?;
    let reconciled = until_done("roles and bindings of the bootstrap policy", || attempt(registry, &policy));
    reconciled.await.map_err(|status| format!("unable to initialize roles: {status}"))
}

async fn attempt(registry: &Registry, policy: &[PolicyObject]) -> Result<i64, Box<Status>> {
    let present = existing_objects(registry).await?;
    let before = present.values().map(StoredObject::revision).max().unwrap_or(0);
    let steps: Vec<PolicyStep> =
        policy.iter().filter_map(|object| decision::step(object, present.get(&object.key))).collect();
    if steps.is_empty() {
        return Ok(before);
    }
    let context = Context::system("system:apiserver");
    join_all(NAMESPACES.map(|name| ensure_namespace(registry, &context, name))).await;
    // Concurrent writes share commits.
    let revisions = join_all(steps.into_iter().map(|step| execute(registry, &context, step))).await;
    revisions.into_iter().try_fold(before, |latest, one| Ok(latest.max(one?)))
}

async fn existing_objects(registry: &Registry) -> Result<HashMap<Key, StoredObject>, Box<Status>> {
    let mut present = HashMap::new();
    for resource in Resource::ALL {
        let all = registry.list(&resource.group_resource(), "", &ListOptions::default()).await?;
        present.extend(all.items.into_iter().map(|stored| {
            let (namespace, name) = (stored.namespace().to_owned(), stored.name().to_owned());
            (Key { resource, namespace, name }, stored)
        }));
    }
    Ok(present)
}

/// Creates the namespace of a role if it does not exist. A failure is ignored: creating the role reports it.
async fn ensure_namespace(registry: &Registry, context: &Context, name: &str) {
    let namespaces = GroupResource::new("", "namespaces");
    if registry.get(&namespaces, "", name).await.is_ok() {
        return;
    }
    let kind =
        GroupVersionKind { group: String::new(), version: "v1".to_owned(), kind: "Namespace".to_owned() };
    let mut object = Object::new(&kind);
    object.set(&["metadata", "name"], name);
    if let Err(status) = registry.create(context, &namespaces, object, &CreateOptions::default()).await {
        tracing::debug!(error = %status, name, "cannot create a namespace");
    }
}

/// Executes a step and returns the revision of its write.
async fn execute(registry: &Registry, context: &Context, step: PolicyStep) -> Result<i64, Box<Status>> {
    let resource = step.resource.group_resource();
    let options = CreateOptions::default();
    let create = |object| registry.create(context, &resource, object, &options);
    let result = match step.verb {
        decision::PolicyStepVerb::Create => create(step.object).await,
        decision::PolicyStepVerb::Update => {
            let options = UpdateOptions::default();
            registry.update(context, &resource, ObjectPart::Main, step.object, &options).await
        }
        decision::PolicyStepVerb::Recreate { uid } => {
            let preconditions = Preconditions { uid: Some(uid), ..Preconditions::default() };
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            let (namespace, name) = (step.object.namespace(), step.object.name());
            match registry.delete(context, &resource, namespace, name, &options).await {
                Ok(_) => create(step.object).await,
                Err(status) => Err(status),
            }
        }
    };
    match skip_unreadable(result) {
        Ok(written) => Ok(written.map_or(0, |written| written.stored.revision())),
        // Another server was faster: the next attempt or the next start checks its object.
        Err(status) if status.reason() == Reason::AlreadyExists => Ok(0),
        Err(status) => Err(status),
    }
}
