//! The resource of a write in its other served versions (upstream's `EquivalentResourceMapper` and `VersionedAttributes`), for
//! webhooks and policies that match a different version than that of the request.

use std::borrow::Cow;
use std::sync::Arc;

use portico_machinery::{GroupVersionKind, GroupVersionResource, Object, Status};
use portico_schema::Schema;

use super::attributes::{Attributes, Operation};
use crate::Result;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::typed::Part;

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
            VersionError::Undecodable(why) => Self::new(Status::internal(why)),
            VersionError::Failed(status) => status,
        }
    }
}

impl Attributes<'_> {
    /// Resource of the request.
    #[must_use]
    pub fn resource(&self) -> GroupVersionResource {
        self.served.info.gvr()
    }

    /// Kind of the request body; for a subresource the kind that the subresource accepts.
    #[must_use]
    pub fn kind(&self) -> GroupVersionKind {
        self.kind_in(self.served)
    }

    /// Kind of the request body in another version of the resource.
    #[must_use]
    pub fn kind_in(&self, served: &ServedResource) -> GroupVersionKind {
        match self.part {
            Part::Main => served.info.gvk.clone(),
            Part::Subresource(name) => {
                let subresource = served.info.subresource(name);
                subresource.map_or_else(|| served.info.gvk.clone(), |known| known.kind.clone())
            }
        }
    }

    /// Other versions in which the resource and the subresource of the request are served.
    #[must_use]
    pub fn equivalents(&self, objects: &Objects) -> Vec<Arc<ServedResource>> {
        let mut found = objects.versions_of(self.served);
        let own = &self.served.info;
        let is_other = |other: &ServedResource| {
            other.info.gvk.version != own.gvk.version
                || other.info.gvk.group != own.gvk.group
                || other.info.resource != own.resource
        };
        found.retain(|served| is_other(served) && self.is_in(served));
        found
    }

    fn is_in(&self, served: &ServedResource) -> bool {
        match self.part {
            Part::Main => true,
            Part::Subresource(name) => served.info.subresource(name).is_some(),
        }
    }

    /// True if the objects of the request are of the resource's own kind, which has versions, and not a Scale or options.
    fn is_of_resource(&self) -> bool {
        match self.part {
            Part::Main => true,
            Part::Subresource(name) => {
                let subresource = self.served.info.subresource(name);
                subresource.is_none_or(|known| known.kind == self.served.info.gvk)
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
        served: &ServedResource,
        object: &'o Object,
    ) -> Result<Cow<'o, Object>> {
        if !self.is_of_resource() || object.api_version() == served.api_version {
            return Ok(Cow::Borrowed(object));
        }
        if let Some(custom) = &self.served.custom {
            let shown = converted(objects, custom, object.clone(), &served.api_version).await;
            return shown.map(Cow::Owned);
        }
        let mut shown = object.clone();
        served.to_version(&mut shown);
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
        served: &ServedResource,
        changed: &Object,
    ) -> std::result::Result<(Object, Vec<String>), VersionError> {
        let of_resource = self.is_of_resource();
        let part = if of_resource { Part::Main } else { self.part };
        if self.operation == Operation::Connect {
            // Options of a connection have no types here.
            return Ok((changed.clone(), Vec::new()));
        }
        let (gvk, schema) = served.kind_of(part)?;
        let decoded =
            schema.retype(changed, gvk).map_err(|error| VersionError::Undecodable(error.cause()))?;
        let (mut object, dropped) = (decoded.object, decoded.strict);
        if !of_resource {
            return Ok((object, dropped));
        }
        served.complete(&mut object, objects.moment());
        if let Some(custom) = &self.served.custom {
            object = converted(objects, custom, object, &self.served.api_version).await?;
        }
        Ok((object, dropped))
    }

    /// Types of the objects of the request in a version.
    ///
    /// # Errors
    /// Status 405 for kinds without types.
    pub fn schema_in<'s>(&self, served: &'s ServedResource) -> Result<&'s Schema> {
        let part = if self.is_of_resource() { Part::Main } else { self.part };
        served.kind_of(part).map(|(_, schema)| schema)
    }
}

async fn converted(
    objects: &Objects,
    custom: &crate::custom::Custom,
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
