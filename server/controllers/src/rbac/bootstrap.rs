//! Bootstrap policy, reconciled at the start (hook `rbac/bootstrap-roles`).
//!
//! Missing parts are added and additions by users are kept; the annotation `rbac.authorization.kubernetes.io/autoupdate:
//! "false"` protects an object from all changes.

mod decide;
mod facts;

use std::collections::HashMap;

use futures::future::join_all;
use portico_machinery::rbac::{Key, Resource};
use portico_machinery::{GroupResource, GroupVersionKind, Object, Reason, Status};
use portico_registry::{
    Context, CreateOptions, DeleteOptions, ListOptions, Part, Preconditions, Registry, Stored, UpdateOptions,
};

use crate::outcome::unless_unreadable;
use crate::rounds::until_done;
pub use decide::Step;
pub use facts::{Content, Entry, WrongFacts, entries};

/// Namespaces that contain roles of the policy.
const NAMESPACES: [&str; 2] = ["kube-system", "kube-public"];

/// Reconciles the policy, and returns the revision at which it is complete; retries for half a minute.
///
/// # Errors
/// Returns the last failure.
pub async fn reconcile(registry: &Registry) -> Result<i64, String> {
    let wanted = entries().map_err(|e| e.to_string())?;
    let done = until_done("roles and bindings of the bootstrap policy", || attempt(registry, &wanted));
    done.await.map_err(|status| format!("unable to initialize roles: {status}"))
}

async fn attempt(registry: &Registry, wanted: &[Entry]) -> Result<i64, Box<Status>> {
    let present = present(registry).await?;
    let before = present.values().map(Stored::revision).max().unwrap_or(0);
    let steps: Vec<Step> = wanted.iter().filter_map(|one| decide::step(one, present.get(&one.key))).collect();
    if steps.is_empty() {
        return Ok(before);
    }
    let context = Context::system("system:apiserver");
    join_all(NAMESPACES.map(|name| ensure_namespace(registry, &context, name))).await;
    // Concurrent writes share commits.
    let carried = join_all(steps.into_iter().map(|step| carry_out(registry, &context, step))).await;
    carried.into_iter().try_fold(before, |latest, one| Ok(latest.max(one?)))
}

async fn present(registry: &Registry) -> Result<HashMap<Key, Stored>, Box<Status>> {
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
async fn carry_out(registry: &Registry, context: &Context, step: Step) -> Result<i64, Box<Status>> {
    let resource = step.resource.group_resource();
    let options = CreateOptions::default();
    let create = |object| registry.create(context, &resource, object, &options);
    let done = match step.verb {
        decide::Verb::Create => create(step.object).await,
        decide::Verb::Update => {
            let options = UpdateOptions::default();
            registry.update(context, &resource, Part::Main, step.object, &options).await
        }
        decide::Verb::Recreate { uid } => {
            let preconditions = Preconditions { uid: Some(uid), ..Preconditions::default() };
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            let (namespace, name) = (step.object.namespace(), step.object.name());
            match registry.delete(context, &resource, namespace, name, &options).await {
                Ok(_) => create(step.object).await,
                Err(status) => Err(status),
            }
        }
    };
    match unless_unreadable(done) {
        Ok(written) => Ok(written.map_or(0, |written| written.stored.revision())),
        // Another server was faster: the next attempt or the next start checks its object.
        Err(status) if status.reason() == Reason::AlreadyExists => Ok(0),
        Err(status) => Err(status),
    }
}
