//! What has to be known besides an object to say what it needs: ResourceClaims alone look around.

use std::collections::{BTreeMap, BTreeSet};

use portico_machinery::object::OwnerReference;
use portico_machinery::{Cursor, Object};

/// Marks a claim that the scheduler has made for extended resources of a pod.
const EXTENDED_CLAIM: &str = "resource.kubernetes.io/extended-resource-claim";

/// Device classes, and what belongs to claims that were made for extended resources of pods.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// All classes by name, with the extended resource that each stands for.
    classes: BTreeMap<String, Option<String>>,
    /// The extended resources that classes stand for.
    extended: BTreeSet<String>,
    /// Pods of the namespace by name: at least those that own such claims.
    pods: BTreeMap<String, Object>,
    /// Such claims of the namespace.
    claims: Vec<Object>,
}

impl Surroundings {
    /// Those of these device classes.
    #[must_use]
    pub fn of_classes<'o>(classes: impl IntoIterator<Item = &'o Object>) -> Self {
        let extended = |class: &Object| {
            let name = class.at(&["spec", "extendedResourceName"]).opt_str().map(str::to_owned);
            (class.name().to_owned(), name)
        };
        let classes: BTreeMap<String, Option<String>> = classes.into_iter().map(extended).collect();
        let extended = classes.values().flatten().cloned().collect();
        Self { classes, extended, ..Self::default() }
    }

    /// The same with pods and claims of the namespace.
    #[must_use]
    pub fn with(mut self, pods: Vec<Object>, claims: Vec<Object>) -> Self {
        self.pods = pods.into_iter().map(|pod| (pod.name().to_owned(), pod)).collect();
        self.claims = claims;
        self
    }

    /// Whether a device class stands for this extended resource, by its name or because it says so.
    pub(crate) fn has_class_for(&self, extended: &str, implicit: &str) -> bool {
        match extended.strip_prefix(implicit) {
            Some(class) => self.classes.contains_key(class),
            None => self.extended.contains(extended),
        }
    }

    /// The extended resource that a class says it stands for.
    pub(crate) fn extended_of(&self, class: &str) -> Option<&str> {
        self.classes.get(class)?.as_deref().filter(|name| !name.is_empty())
    }

    /// The pod for whose extended resources a claim was made, when both say so (upstream's `getVerifiedPodUsage`).
    pub(crate) fn pod_of(&self, claim: &Object) -> Option<&Object> {
        let owner = extended_claim_owner(claim)?;
        let pod = self.pods.get(&owner.name).filter(|pod| pod.uid() == owner.uid)?;
        let status = pod.at(&["status", "extendedResourceClaimStatus"]);
        let is_meant = if status.is_present() {
            status.field("resourceClaimName").str() == claim.name()
        } else {
            self.claims.iter().filter(|other| is_owned_by(other, &owner)).all(|other| !precedes(other, claim))
        };
        is_meant.then_some(pod)
    }
}

/// The pod for whose extended resources the scheduler has made a claim; nothing of other claims.
#[must_use]
pub fn extended_claim_owner(claim: &Object) -> Option<OwnerReference> {
    claim.annotation(EXTENDED_CLAIM).filter(|marked| *marked == "true")?;
    let owners = claim.owner_references();
    let controller = owners.into_iter().find(|owner| owner.controller == Some(true))?;
    (controller.kind == "Pod" && controller.api_version == "v1").then_some(controller)
}

fn is_owned_by(claim: &Object, owner: &OwnerReference) -> bool {
    extended_claim_owner(claim).is_some_and(|other| other.uid == owner.uid)
}

/// Whether a claim is older than another, or as old and first by name.
fn precedes(claim: &Object, other: &Object) -> bool {
    let age = |claim: &Object| claim.creation_timestamp().unwrap_or_default().to_owned();
    (age(claim), claim.name()) < (age(other), other.name())
}

/// A cursor at a claim's requests.
pub(crate) fn requests(claim: &Object) -> Cursor<'_> {
    claim.at(&["spec", "devices", "requests"])
}
