//! DefaultStorageClass and DefaultIngressClass: set the default class on objects that name no class.

use portico_machinery::{GroupResource, Object};

use crate::listing::all;
use crate::plugin::{Mutating, MutationRequest, Plugin, Target};
use portico_registry::Objects;

/// Plugin that sets the default class of one resource.
pub(super) struct DefaultClass {
    /// Resources on which the class is set.
    of: &'static [Target],
    field: &'static str,
    /// Annotation that named the class before the field existed.
    old: &'static str,
    classes: (&'static str, &'static str),
    /// Annotations that mark the default class.
    marks: &'static [&'static str],
}

/// DefaultStorageClass, for PersistentVolumeClaims.
pub(super) const STORAGE: DefaultClass = DefaultClass {
    of: &[("", "persistentvolumeclaims", "")],
    field: "storageClassName",
    old: "volume.beta.kubernetes.io/storage-class",
    classes: ("storage.k8s.io", "storageclasses"),
    marks: &[
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ],
};

/// DefaultIngressClass, for Ingresses.
pub(super) const INGRESS: DefaultClass = DefaultClass {
    of: &[("networking.k8s.io", "ingresses", "")],
    field: "ingressClassName",
    old: "kubernetes.io/ingress.class",
    classes: ("networking.k8s.io", "ingressclasses"),
    marks: &["ingressclass.kubernetes.io/is-default-class"],
};

impl Plugin for DefaultClass {
    fn targets(&self) -> &'static [Target] {
        self.of
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> Mutating<'a> {
        Box::pin(async move {
            let path = ["spec", self.field];
            let has_class = change.new.at(&path).is_present() || change.new.annotation(self.old).is_some();
            if change.old.is_some() || has_class {
                return Ok(());
            }
            let classes = all(objects, None, &GroupResource::new(self.classes.0, self.classes.1)).await?;
            let classes = classes.complete(&change.attributes)?;
            if let Some(class) = marked(&classes, self.marks) {
                change.new.set(&path, class.name());
            }
            Ok(())
        })
    }
}

/// Returns the newest object that an annotation marks as the default; among objects of the same age, the first by name.
fn marked<'a>(objects: &'a [Object], annotations: &[&str]) -> Option<&'a Object> {
    let is_marked = |object: &&Object| annotations.iter().any(|key| object.annotation(key) == Some("true"));
    let newest = |object: &&Object| {
        let created = object.creation_timestamp().unwrap_or_default().to_owned();
        (std::cmp::Reverse(created), object.name().to_owned())
    };
    objects.iter().filter(is_marked).min_by_key(newest)
}
