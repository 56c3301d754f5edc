//! The resource of a write in its other served versions (upstream's `EquivalentResourceMapper` and `VersionedAttributes`), for
//! webhooks and policies that match a different version than that of the request.

use std::borrow::Cow;
use std::sync::Arc;

use portico_machinery::{GroupVersionKind, GroupVersionResource, Object, Status};
use portico_schema::Schema;

use super::attributes::{Attributes, Operation};
use crate::Result;
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::verb_types::ObjectPart;

/// Reason for which a changed object cannot be read.
#[derive(Debug)]
pub enum VersionError {
    /// The object does not match its kind; contains the reason.
    Undecodable(String),
    /// The resource has no types, or a conversion webhook failed.
    Failed(Box<Status>),
}

impl From<Box<Status>> for VersionError {
    fn from(status: Box<Status>) -> Self {
        Self::Failed(status)
    }
}

/// Status 500 for an object that does not match its kind.
impl From<VersionError> for Box<Status> {
    fn from(error: VersionError) -> Self {
        match error {
            VersionError::Undecodable(reason) => Self::new(Status::internal(reason)),
            VersionError::Failed(status) => status,
        }
    }
}

impl Attributes<'_> {
    /// Resource of the request.
    #[must_use]
    pub fn resource(&self) -> GroupVersionResource {
        self.served_resource.info.gvr()
    }

    /// Kind of the request body; for a subresource the kind that the subresource accepts.
    #[must_use]
    pub fn kind(&self) -> GroupVersionKind {
        self.kind_in(self.served_resource)
    }

    /// Kind of the request body in another version of the resource.
    #[must_use]
    pub fn kind_in(&self, served_resource: &ServedResource) -> GroupVersionKind {
        match self.part {
            ObjectPart::Main => served_resource.info.gvk.clone(),
            ObjectPart::Subresource(name) => {
                let subresource = served_resource.info.subresource(name);
                subresource.map_or_else(|| served_resource.info.gvk.clone(), |known| known.kind.clone())
            }
        }
    }

    /// Other versions in which the resource and the subresource of the request are served.
    #[must_use]
    pub fn equivalents(&self, objects: &Objects) -> Vec<Arc<ServedResource>> {
        let mut found = objects.versions_of(self.served_resource);
        let own = &self.served_resource.info;
        let is_other = |other: &ServedResource| {
            other.info.gvk.version != own.gvk.version
                || other.info.gvk.group != own.gvk.group
                || other.info.resource != own.resource
        };
        found.retain(|served_resource| is_other(served_resource) && self.has_subresource_in(served_resource));
        found
    }

    fn has_subresource_in(&self, served_resource: &ServedResource) -> bool {
        match self.part {
            ObjectPart::Main => true,
            ObjectPart::Subresource(name) => served_resource.info.subresource(name).is_some(),
        }
    }

    /// True if the objects of the request are of the resource's own kind, which has versions, and not a Scale or options.
    fn is_of_resource(&self) -> bool {
        match self.part {
            ObjectPart::Main => true,
            ObjectPart::Subresource(name) => {
                let subresource = self.served_resource.info.subresource(name);
                subresource.is_none_or(|known| known.kind == self.served_resource.info.gvk)
            }
        }
    }

    /// Converts an object of the request to a version of its resource.
    ///
    /// # Errors
    /// Status 500 from a conversion webhook.
    pub async fn to_version<'o>(
        &self,
        objects: &Objects,
        served_resource: &ServedResource,
        object: &'o Object,
    ) -> Result<Cow<'o, Object>> {
        if !self.is_of_resource() || object.api_version() == served_resource.api_version {
            return Ok(Cow::Borrowed(object));
        }
        if let Some(custom) = &self.served_resource.custom {
            let shown = convert_custom(objects, custom, object.clone(), &served_resource.api_version).await;
            return shown.map(Cow::Owned);
        }
        let mut shown = object.clone();
        served_resource.to_version(&mut shown);
        Ok(Cow::Owned(shown))
    }

    /// Converts an object that a webhook or policy changed in a version back to the version of the request: decodes it by its
    /// kind and applies defaults. Also returns the unknown fields, which are dropped.
    ///
    /// # Errors
    /// [`VersionError`] if the object cannot be read or converted.
    pub async fn from_version(
        &self,
        objects: &Objects,
        served_resource: &ServedResource,
        changed: &Object,
    ) -> std::result::Result<(Object, Vec<String>), VersionError> {
        let of_resource = self.is_of_resource();
        let part = if of_resource { ObjectPart::Main } else { self.part };
        if self.operation == Operation::Connect {
            // Options of a connection have no types here.
            return Ok((changed.clone(), Vec::new()));
        }
        let (gvk, schema) = served_resource.kind_of(part)?;
        let decoded =
            schema.retype(changed, gvk).map_err(|error| VersionError::Undecodable(error.cause()))?;
        let (mut object, dropped) = (decoded.object, decoded.strict);
        if !of_resource {
            return Ok((object, dropped));
        }
        served_resource.apply_defaults(&mut object, objects.request_time());
        if let Some(custom) = &self.served_resource.custom {
            object = convert_custom(objects, custom, object, &self.served_resource.api_version).await?;
        }
        Ok((object, dropped))
    }

    /// Types of the objects of the request in a version.
    ///
    /// # Errors
    /// Status 405 for kinds without types.
    pub fn schema_in<'s>(&self, served_resource: &'s ServedResource) -> Result<&'s Schema> {
        let part = if self.is_of_resource() { ObjectPart::Main } else { self.part };
        served_resource.kind_of(part).map(|(_, schema)| schema)
    }
}

async fn convert_custom(
    objects: &Objects,
    custom: &crate::custom::CustomVersion,
    object: Object,
    api_version: &str,
) -> Result<Object> {
    if object.api_version() == api_version {
        return Ok(object);
    }
    let mut object = objects.convert_one(custom, api_version, object).await?;
    object.set(&["apiVersion"], api_version);
    Ok(object)
}
