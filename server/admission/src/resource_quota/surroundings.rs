//! What evaluators have to know besides an object, read from what is stored.

use portico_machinery::{GroupResource, Object};
use portico_quota::{Surroundings, extended_claim_owner};
use portico_registry::{Attributes, Objects, Result};

use crate::listing::all;

/// Objects of the namespace that quotas count with the written object; they exist for ResourceClaims only.
///
/// # Errors
/// 403 if some of it cannot be read.
pub(super) async fn of(
    objects: &Objects,
    attributes: &Attributes<'_>,
    object: &Object,
) -> Result<Surroundings> {
    let resource = &attributes.served.resource;
    if (resource.group.as_str(), resource.resource.as_str()) != ("resource.k8s.io", "resourceclaims") {
        return Ok(Surroundings::default());
    }
    let classes = all(objects, None, &GroupResource::new("resource.k8s.io", "deviceclasses"))
        .await?
        .complete(attributes)?;
    let surroundings = Surroundings::of_classes(&classes);
    if extended_claim_owner(object).is_none() {
        return Ok(surroundings);
    }
    let pods = all(objects, Some(object.namespace()), &GroupResource::new("", "pods")).await?;
    let claims = all(objects, Some(object.namespace()), resource).await?;
    Ok(surroundings.with(pods.complete(attributes)?, claims.complete(attributes)?))
}
