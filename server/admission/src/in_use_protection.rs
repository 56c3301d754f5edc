//! StorageObjectInUseProtection: adds finalizers so that volumes, claims and attribute classes are not deleted while in use.

use crate::plugin::{MutationFuture, MutationRequest, Plugin, ResourcePattern};
use portico_registry::Objects;

pub(super) struct StorageObjectInUseProtection;

impl Plugin for StorageObjectInUseProtection {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[
            ("", "persistentvolumes", ""),
            ("", "persistentvolumeclaims", ""),
            ("storage.k8s.io", "volumeattributesclasses", ""),
        ]
    }

    fn mutate<'a>(&'a self, _objects: &'a Objects, change: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            let resource = &change.attributes.served_resource.resource;
            let finalizer = finalizer(&resource.group, &resource.resource).filter(|_| change.old.is_none());
            if let Some(finalizer) = finalizer.filter(|name| !change.new.finalizers().contains(name)) {
                change.new.push(&["metadata", "finalizers"], finalizer);
            }
            Ok(())
        })
    }
}

fn finalizer(group: &str, resource: &str) -> Option<&'static str> {
    Some(match (group, resource) {
        ("", "persistentvolumes") => "kubernetes.io/pv-protection",
        ("", "persistentvolumeclaims") => "kubernetes.io/pvc-protection",
        ("storage.k8s.io", "volumeattributesclasses") => "kubernetes.io/vac-protection",
        _ => return None,
    })
}
