//! Served versions of a kind, in the form that the apply engine requires.

use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::{GroupVersion, Object};
use portico_schema::Schema;
use portico_schema::apply::{ConversionError, FieldFilter, Versions};

use crate::builtin::ResourceIndex;
use crate::custom::{CustomVersion, ServedVersions};
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::verb_types::ObjectPart;

/// Kind in the version of a request, and the other versions with the same storage.
pub struct KindVersions<'a> {
    served_resource: &'a ServedResource,
    subresource: &'a str,
    builtin: &'a ResourceIndex,
    /// Other versions of a custom resource.
    custom_versions: Option<Arc<ServedVersions>>,
    conversions: Mutex<Vec<PendingConversion>>,
}

/// Conversion by a webhook that the apply engine requested.
struct PendingConversion {
    object: Object,
    to: Box<str>,
    /// Result; `None` until the webhook was called.
    result: Option<Result<Object, String>>,
}

impl Objects {
    /// Kind in all its versions, without calling webhooks.
    pub fn versions<'a>(
        &'a self,
        served_resource: &'a ServedResource,
        part: ObjectPart<'a>,
    ) -> KindVersions<'a> {
        let subresource = match part {
            ObjectPart::Main => "",
            ObjectPart::Subresource(name) => name,
        };
        let definition =
            served_resource.custom.as_ref().and_then(|_| self.definition(&served_resource.resource));
        KindVersions {
            served_resource,
            subresource,
            builtin: &self.builtin,
            custom_versions: definition.map(|definition| definition.versions),
            conversions: Mutex::default(),
        }
    }

    /// Runs a function on a kind in all its versions. Conversions by webhooks are not available at first: the function runs again
    /// after each call, so it must not have side effects before it succeeds.
    pub(crate) async fn with_versions<T>(
        &self,
        served_resource: &ServedResource,
        part: ObjectPart<'_>,
        mut work: impl FnMut(&KindVersions<'_>) -> T,
    ) -> T {
        let versions = self.versions(served_resource, part);
        loop {
            let result = work(&versions);
            let Some(custom) = served_resource.custom.as_ref().filter(|_| versions.has_pending_conversions())
            else {
                return result;
            };
            versions.run_conversions(self, custom).await;
        }
    }
}

impl<'a> KindVersions<'a> {
    /// Built-in kind in all its versions.
    pub fn of_builtin(
        served_resource: &'a ServedResource,
        subresource: &'a str,
        builtin: &'a ResourceIndex,
    ) -> Self {
        Self { served_resource, subresource, builtin, custom_versions: None, conversions: Mutex::default() }
    }

    /// Kind in the version of the request.
    pub(super) fn served_resource(&self) -> &'a ServedResource {
        self.served_resource
    }

    /// Written subresource, empty for the object itself.
    pub(super) fn subresource(&self) -> &'a str {
        self.subresource
    }

    fn find_version(&self, version: &str) -> Option<&ServedResource> {
        if version == self.served_resource.api_version {
            return Some(self.served_resource);
        }
        let version: GroupVersion = version.parse().ok()?;
        let other = match &self.custom_versions {
            Some(serving) => serving.any_version(&version.version)?,
            None => self.builtin.by_resource(&version.resource(&self.served_resource.info.resource))?,
        };
        (other.storage == self.served_resource.storage).then_some(other)
    }

    /// Converts a custom resource. All errors about the other version are failures, as in upstream.
    fn convert_custom(
        &self,
        custom: &CustomVersion,
        object: &Object,
        to: &str,
    ) -> Result<Object, ConversionError> {
        let target: GroupVersion = to
            .parse()
            .map_err(|_| ConversionError::Failed(format!("unexpected GroupVersion string: {to}")))?;
        if target.group != self.served_resource.info.gvk.group {
            let (version, kind) = (object.api_version(), object.kind());
            return Err(ConversionError::Failed(format!(
                "{version}, Kind={kind} is unstructured and is not suitable for converting to {to:?}"
            )));
        }
        if self.find_version(to).is_none() {
            let message = "request to convert CR to an invalid group/version";
            return Err(ConversionError::Failed(format!("{message}: {to}")));
        }
        if custom.webhook().is_some() {
            return self.request_conversion(object, to);
        }
        let mut object = object.clone();
        object.set(&["apiVersion"], to);
        Ok(object)
    }

    fn request_conversion(&self, object: &Object, to: &str) -> Result<Object, ConversionError> {
        let mut conversions = self.conversions.lock();
        if let Some(conversion) =
            conversions.iter().find(|conversion| *conversion.to == *to && conversion.object == *object)
        {
            let result = conversion.result.clone().ok_or(ConversionError::Pending)?;
            return result.map_err(ConversionError::Failed);
        }
        conversions.push(PendingConversion { object: object.clone(), to: to.into(), result: None });
        Err(ConversionError::Pending)
    }

    fn has_pending_conversions(&self) -> bool {
        self.conversions.lock().iter().any(|conversion| conversion.result.is_none())
    }

    /// Calls the webhook for all pending conversions.
    async fn run_conversions(&self, objects: &Objects, custom: &CustomVersion) {
        let mut conversions = std::mem::take(&mut *self.conversions.lock());
        for pending in conversions.iter_mut().filter(|conversion| conversion.result.is_none()) {
            let converted = objects.convert_one(custom, &pending.to, pending.object.clone()).await;
            pending.result = Some(converted.map_err(|status| status.message));
        }
        *self.conversions.lock() = conversions;
    }
}

impl Versions for KindVersions<'_> {
    fn schema(&self, version: &str) -> Option<&Schema> {
        Some(&self.find_version(version)?.info.schema)
    }

    fn convert(&self, object: &Object, from: &str, to: &str) -> Result<Object, ConversionError> {
        if let Some(custom) = &self.served_resource.custom {
            return self.convert_custom(custom, object, to);
        }
        let (from_version, to_version) =
            self.find_version(from).zip(self.find_version(to)).ok_or(ConversionError::VersionRemoved)?;
        let mut object = object.clone();
        from_version.to_storage(&mut object);
        to_version.to_version(&mut object);
        object.set(&["apiVersion"], to);
        Ok(object)
    }

    fn filter(&self, version: &str) -> &FieldFilter {
        self.find_version(version).unwrap_or(self.served_resource).info.ownership.filter(self.subresource)
    }
}
