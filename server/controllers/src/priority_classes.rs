//! The two system priority classes, created at the start (hook `scheduling/bootstrap-system-priority-classes`). They cannot
//! be deleted or changed, so that creating them once is enough.

use futures::future::join_all;
use portico_machinery::{GroupResource, GroupVersionKind, Object, Reason, Status};
use portico_registry::{Context, CreateOptions, Registry};

use crate::periodic::until_done;
use crate::write_result::{ignore_reasons, skip_unreadable};

/// Name, value and description of each class.
const CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

/// Creates missing classes; retries for half a minute.
///
/// # Errors
/// Returns the last failure.
pub async fn ensure(registry: &Registry) -> Result<(), String> {
    let created = until_done("priority classes", || async {
        let results = join_all(CLASSES.iter().map(|class| create(registry, *class))).await;
        results.into_iter().collect()
    });
    created.await.map_err(|status| format!("unable to add default system priority classes: {status}"))
}

async fn create(
    registry: &Registry,
    (name, value, description): (&str, i64, &str),
) -> Result<(), Box<Status>> {
    let resource = GroupResource::new("scheduling.k8s.io", "priorityclasses");
    if registry.get(&resource, "", name).await.is_ok() {
        return Ok(());
    }
    let mut object = Object::new(&GroupVersionKind {
        group: "scheduling.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "PriorityClass".to_owned(),
    });
    object.set(&["metadata", "name"], name);
    object.set(&["value"], value);
    object.set(&["description"], description);
    let context = Context::system("system:apiserver");
    let created = registry.create(&context, &resource, object, &CreateOptions::default()).await;
    ignore_reasons(skip_unreadable(created), &[Reason::AlreadyExists])
}
