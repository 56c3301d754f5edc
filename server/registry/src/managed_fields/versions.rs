//! The versions in which a kind is served, as the apply engine asks for them.

use std::sync::Arc;

use portico_machinery::{GroupVersion, Object};
use portico_schema::Schema;
use portico_schema::apply::{Filter, Versions};

use crate::custom::Serving;
use crate::served::{Catalogue, Served};

/// A kind in the version of a request, and the others that share its storage.
pub(crate) struct KindVersions<'a> {
    served: &'a Served,
    subresource: &'a str,
    catalogue: &'a Catalogue,
    /// The other versions of a custom resource.
    serving: Option<Arc<Serving>>,
}

impl<'a> KindVersions<'a> {
    /// For writes of a subresource, or of the object itself when that is empty.
    pub(crate) fn new(
        served: &'a Served,
        subresource: &'a str,
        catalogue: &'a Catalogue,
        serving: Option<Arc<Serving>>,
    ) -> Self {
        Self { served, subresource, catalogue, serving }
    }

    /// The kind in the version of the request.
    pub(super) fn served(&self) -> &'a Served {
        self.served
    }

    /// The subresource that is written, empty for the object itself.
    pub(super) fn subresource(&self) -> &'a str {
        self.subresource
    }

    fn of(&self, version: &str) -> Option<&Served> {
        if version == self.served.api_version {
            return Some(self.served);
        }
        let version: GroupVersion = version.parse().ok()?;
        let other = match &self.serving {
            Some(serving) => serving.version(&version.version)?,
            None => self.catalogue.by_resource(&version.resource(&self.served.info.resource))?,
        };
        (other.storage == self.served.storage).then_some(other)
    }
}

impl Versions for KindVersions<'_> {
    fn schema(&self, version: &str) -> Option<&Schema> {
        Some(&self.of(version)?.info.schema)
    }

    fn convert(&self, object: &Object, from: &str, to: &str) -> Option<Object> {
        let mut object = object.clone();
        self.of(from)?.to_storage(&mut object);
        self.of(to)?.to_version(&mut object);
        object.set(&["apiVersion"], to);
        Some(object)
    }

    fn filter(&self, version: &str) -> &Filter {
        self.of(version).unwrap_or(self.served).info.ownership.filter(self.subresource)
    }
}
