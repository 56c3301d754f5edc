//! Objects that evaluators need in addition to the written object, read from the store.

use portico_machinery::{GroupResource, Object};
use portico_quota::{DeviceContext, extended_claim_owner};
use portico_registry::{Attributes, Objects, Result};

use crate::listing::list_all;

/// Reads the objects of the namespace that quotas count together with the written object. Only ResourceClaims need any.
///
/// # Errors
/// 403 if some of the objects cannot be read.
pub(super) async fn read(
    objects: &Objects,
    attributes: &Attributes<'_>,
    object: &Object,
) -> Result<DeviceContext> {
    let resource = &attributes.served_resource.resource;
    if (resource.group.as_str(), resource.resource.as_str()) != ("resource.k8s.io", "resourceclaims") {
        return Ok(DeviceContext::default());
    }
    let classes = list_all(objects, None, &GroupResource::new("resource.k8s.io", "deviceclasses"))
        .await?
        .complete(attributes)?;
    let device_context = DeviceContext::from_classes(&classes);
    if extended_claim_owner(object).is_none() {
        return Ok(device_context);
    }
    let pods = list_all(objects, Some(object.namespace()), &GroupResource::new("", "pods")).await?;
    let claims = list_all(objects, Some(object.namespace()), resource).await?;
    Ok(device_context.with_namespace(pods.complete(attributes)?, claims.complete(attributes)?))
}
