//! Served versions of a kind, in the form that the apply engine requires.

use std::sync::Arc;

use parking_lot::Mutex;
use portico_machinery::{GroupVersion, Object};
use portico_schema::Schema;
use portico_schema::apply::{Filter, Unconverted, Versions};

use crate::builtin::ResourceIndex;
use crate::custom::{Custom, Serving};
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::typed::Part;

/// Kind in the version of a request, and the other versions with the same storage.
pub struct KindVersions<'a> {
    served: &'a ServedResource,
    subresource: &'a str,
    builtin: &'a ResourceIndex,
    /// Other versions of a custom resource.
    serving: Option<Arc<Serving>>,
    asked: Mutex<Vec<Asked>>,
}

/// Conversion by a webhook that the apply engine requested.
struct Asked {
    object: Object,
    to: Box<str>,
    /// Result; `None` until the webhook was called.
    answer: Option<Result<Object, String>>,
}

impl Objects {
    /// Kind in all its versions, without calling webhooks.
    pub fn versions<'a>(&'a self, served: &'a ServedResource, part: Part<'a>) -> KindVersions<'a> {
        let subresource = match part {
            Part::Main => "",
            Part::Subresource(name) => name,
        };
        let definition = served.custom.as_ref().and_then(|_| self.definition(&served.resource));
        KindVersions {
            served,
            subresource,
            builtin: &self.builtin,
            serving: definition.map(|definition| definition.serving),
            asked: Mutex::default(),
        }
    }

    /// Runs a function on a kind in all its versions. Conversions by webhooks are not available at first: the function runs again
    /// after each call, so it must not have side effects before it succeeds.
    pub(crate) async fn across_versions<T>(
        &self,
        served: &ServedResource,
        part: Part<'_>,
        mut work: impl FnMut(&KindVersions<'_>) -> T,
    ) -> T {
        let versions = self.versions(served, part);
        loop {
            let done = work(&versions);
            let Some(custom) = served.custom.as_ref().filter(|_| versions.is_asked()) else { return done };
            versions.answer(self, custom).await;
        }
    }
}

impl<'a> KindVersions<'a> {
    /// Built-in kind in all its versions.
    pub fn of_builtin(served: &'a ServedResource, subresource: &'a str, builtin: &'a ResourceIndex) -> Self {
        Self { served, subresource, builtin, serving: None, asked: Mutex::default() }
    }

    /// Kind in the version of the request.
    pub(super) fn served(&self) -> &'a ServedResource {
        self.served
    }

    /// Written subresource, empty for the object itself.
    pub(super) fn subresource(&self) -> &'a str {
        self.subresource
    }

    fn of(&self, version: &str) -> Option<&ServedResource> {
        if version == self.served.api_version {
            return Some(self.served);
        }
        let version: GroupVersion = version.parse().ok()?;
        let other = match &self.serving {
            Some(serving) => serving.any_version(&version.version)?,
            None => self.builtin.by_resource(&version.resource(&self.served.info.resource))?,
        };
        (other.storage == self.served.storage).then_some(other)
    }

    /// Converts a custom resource. All errors about the other version are failures, as in upstream.
    fn converted(&self, custom: &Custom, object: &Object, to: &str) -> Result<Object, Unconverted> {
        let wanted: GroupVersion =
            to.parse().map_err(|_| Unconverted::Failed(format!("unexpected GroupVersion string: {to}")))?;
        if wanted.group != self.served.info.gvk.group {
            let (version, kind) = (object.api_version(), object.kind());
            return Err(Unconverted::Failed(format!(
                "{version}, Kind={kind} is unstructured and is not suitable for converting to {to:?}"
            )));
        }
        if self.of(to).is_none() {
            let words = "request to convert CR to an invalid group/version";
            return Err(Unconverted::Failed(format!("{words}: {to}")));
        }
        if custom.webhook().is_some() {
            return self.ask(object, to);
        }
        let mut object = object.clone();
        object.set(&["apiVersion"], to);
        Ok(object)
    }

    fn ask(&self, object: &Object, to: &str) -> Result<Object, Unconverted> {
        let mut asked = self.asked.lock();
        if let Some(known) = asked.iter().find(|known| *known.to == *to && known.object == *object) {
            let answer = known.answer.clone().ok_or(Unconverted::Pending)?;
            return answer.map_err(Unconverted::Failed);
        }
        asked.push(Asked { object: object.clone(), to: to.into(), answer: None });
        Err(Unconverted::Pending)
    }

    fn is_asked(&self) -> bool {
        self.asked.lock().iter().any(|asked| asked.answer.is_none())
    }

    /// Calls the webhook for all pending conversions.
    async fn answer(&self, inner: &Objects, custom: &Custom) {
        let mut asked = std::mem::take(&mut *self.asked.lock());
        for open in asked.iter_mut().filter(|asked| asked.answer.is_none()) {
            let converted = inner.convert_one(custom, &open.to, open.object.clone()).await;
            open.answer = Some(converted.map_err(|status| status.message));
        }
        *self.asked.lock() = asked;
    }
}

impl Versions for KindVersions<'_> {
    fn schema(&self, version: &str) -> Option<&Schema> {
        Some(&self.of(version)?.info.schema)
    }

    fn convert(&self, object: &Object, from: &str, to: &str) -> Result<Object, Unconverted> {
        if let Some(custom) = &self.served.custom {
            return self.converted(custom, object, to);
        }
        let (from, there) = self.of(from).zip(self.of(to)).ok_or(Unconverted::Gone)?;
        let mut object = object.clone();
        from.to_storage(&mut object);
        there.to_version(&mut object);
        object.set(&["apiVersion"], to);
        Ok(object)
    }

    fn filter(&self, version: &str) -> &Filter {
        self.of(version).unwrap_or(self.served).info.ownership.filter(self.subresource)
    }
}
