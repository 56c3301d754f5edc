//! What evaluators have to know besides an object, read from what is stored.

use portico_machinery::{GroupResource, Object};
use portico_quota::{Surroundings, extended_claim_owner};
use portico_registry::{Objects, Result};

use crate::plugin::{all, all_in};

/// What surrounds an object of this kind in its namespace: nothing but for ResourceClaims.
pub(super) async fn of(objects: &Objects, resource: &GroupResource, object: &Object) -> Result<Surroundings> {
    if (resource.group.as_str(), resource.resource.as_str()) != ("resource.k8s.io", "resourceclaims") {
        return Ok(Surroundings::default());
    }
    let surroundings = Surroundings::of_classes(&all(objects, "resource.k8s.io", "deviceclasses").await?);
    if extended_claim_owner(object).is_none() {
        return Ok(surroundings);
    }
    let pods = all_in(objects, object.namespace(), &GroupResource::new("", "pods")).await?;
    let claims = all_in(objects, object.namespace(), resource).await?;
    Ok(surroundings.with(pods, claims))
}
