//! Objects that evaluators need in addition to the written object, read from the store.

use portico_machinery::{GroupResource, Object};
use portico_quota::{Surroundings, extended_claim_owner};
use portico_registry::{Attributes, Objects, Result};

use crate::listing::all;

/// Reads the objects of the namespace that quotas count together with the written object. Only ResourceClaims need any.
///
/// # Errors
/// 403 if some of the objects cannot be read.
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
