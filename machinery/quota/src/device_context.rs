//! Objects other than the evaluated one that determine the usage of ResourceClaims.

use std::collections::{BTreeMap, BTreeSet};

use portico_machinery::object::OwnerReference;
use portico_machinery::{Cursor, Object};

/// Annotation of a claim that the scheduler created for extended resources of a pod.
const EXTENDED_CLAIM: &str = "resource.kubernetes.io/extended-resource-claim";

/// Device classes, and the pods and claims of a namespace that belong to extended resources. Only ResourceClaims need it.
#[derive(Clone, Debug, Default)]
pub struct DeviceContext {
    /// All device classes by name, with their extended resources.
    classes: BTreeMap<String, Option<String>>,
    /// Extended resources of the device classes.
    extended_resources: BTreeSet<String>,
    /// Pods of the namespace by name: at least those that own claims for extended resources.
    pods: BTreeMap<String, Object>,
    /// Claims of the namespace that the scheduler created for extended resources.
    claims: Vec<Object>,
}

impl DeviceContext {
    /// Creates a context with these device classes, without pods and claims.
    #[must_use]
    pub fn from_classes<'o>(classes: impl IntoIterator<Item = &'o Object>) -> Self {
        let extended = |class: &Object| {
            let name = class.at(&["spec", "extendedResourceName"]).opt_str().map(str::to_owned);
            (class.name().to_owned(), name)
        };
        let classes: BTreeMap<String, Option<String>> = classes.into_iter().map(extended).collect();
        let extended_resources = classes.values().flatten().cloned().collect();
        Self { classes, extended_resources, ..Self::default() }
    }

    /// Adds the pods and claims of a namespace.
    #[must_use]
    pub fn with_namespace(mut self, pods: Vec<Object>, claims: Vec<Object>) -> Self {
        self.pods = pods.into_iter().map(|pod| (pod.name().to_owned(), pod)).collect();
        self.claims = claims;
        self
    }

    /// True if a device class provides this extended resource: implicitly by its name, or explicitly in its spec.
    pub(crate) fn has_class_for(&self, extended: &str, implicit: &str) -> bool {
        match extended.strip_prefix(implicit) {
            Some(class) => self.classes.contains_key(class),
            None => self.extended_resources.contains(extended),
        }
    }

    /// Returns the extended resource in the spec of a class.
    pub(crate) fn extended_resource_of(&self, class: &str) -> Option<&str> {
        self.classes.get(class)?.as_deref().filter(|name| !name.is_empty())
    }

    /// Returns the pod for whose extended resources a claim was created, if both refer to each other (upstream's
    /// `getVerifiedPodUsage`).
    pub(crate) fn charged_pod(&self, claim: &Object) -> Option<&Object> {
        let owner = extended_claim_owner(claim)?;
        let pod = self.pods.get(&owner.name).filter(|pod| pod.uid() == owner.uid)?;
        let status = pod.at(&["status", "extendedResourceClaimStatus"]);
        let is_claim_of_pod = if status.is_present() {
            status.field("resourceClaimName").str() == claim.name()
        } else {
            self.claims.iter().filter(|other| is_owned_by(other, &owner)).all(|other| !precedes(other, claim))
        };
        is_claim_of_pod.then_some(pod)
    }
}

/// Returns the pod for whose extended resources the scheduler created a claim; `None` for other claims.
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

/// True if a claim is older than another; the name decides between claims of the same age.
fn precedes(claim: &Object, other: &Object) -> bool {
    let age = |claim: &Object| claim.creation_timestamp().unwrap_or_default().to_owned();
    (age(claim), claim.name()) < (age(other), other.name())
}

/// Returns a cursor at the device requests of a claim.
pub(crate) fn device_requests(claim: &Object) -> Cursor<'_> {
    claim.at(&["spec", "devices", "requests"])
}
