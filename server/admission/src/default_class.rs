//! DefaultStorageClass and DefaultIngressClass: set the default class on objects that name no class.

use portico_machinery::{GroupResource, Object};

use crate::listing::list_all;
use crate::plugin::{MutationFuture, MutationRequest, Plugin, ResourcePattern};
use portico_registry::Objects;

/// Plugin that sets the default class of one resource.
pub(super) struct DefaultClass {
    /// Resources on which the class is set.
    targets: &'static [ResourcePattern],
    field: &'static str,
    /// Annotation that named the class before the field existed.
    legacy_annotation: &'static str,
    class_resource: (&'static str, &'static str),
    /// Annotations that mark the default class.
    default_annotations: &'static [&'static str],
}

/// DefaultStorageClass, for PersistentVolumeClaims.
pub(super) const STORAGE: DefaultClass = DefaultClass {
    targets: &[("", "persistentvolumeclaims", "")],
    field: "storageClassName",
    legacy_annotation: "volume.beta.kubernetes.io/storage-class",
    class_resource: ("storage.k8s.io", "storageclasses"),
    default_annotations: &[
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ],
};

/// DefaultIngressClass, for Ingresses.
pub(super) const INGRESS: DefaultClass = DefaultClass {
    targets: &[("networking.k8s.io", "ingresses", "")],
    field: "ingressClassName",
    legacy_annotation: "kubernetes.io/ingress.class",
    class_resource: ("networking.k8s.io", "ingressclasses"),
    default_annotations: &["ingressclass.kubernetes.io/is-default-class"],
};

impl Plugin for DefaultClass {
    fn targets(&self) -> &'static [ResourcePattern] {
        self.targets
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            let path = ["spec", self.field];
            let has_class =
                change.new.at(&path).is_present() || change.new.annotation(self.legacy_annotation).is_some();
            if change.old.is_some() || has_class {
                return Ok(());
            }
            let classes =
                list_all(objects, None, &GroupResource::new(self.class_resource.0, self.class_resource.1))
                    .await?;
            let classes = classes.complete(&change.attributes)?;
            if let Some(class) = newest_default(&classes, self.default_annotations) {
                change.new.set(&path, class.name());
            }
            Ok(())
        })
    }
}

/// Returns the newest object that an annotation marks as the default; among objects of the same age, the first by name.
fn newest_default<'a>(objects: &'a [Object], annotations: &[&str]) -> Option<&'a Object> {
    let is_marked = |object: &&Object| annotations.iter().any(|key| object.annotation(key) == Some("true"));
    let newest = |object: &&Object| {
        let created = object.creation_timestamp().unwrap_or_default().to_owned();
        (std::cmp::Reverse(created), object.name().to_owned())
    };
    objects.iter().filter(is_marked).min_by_key(newest)
}
