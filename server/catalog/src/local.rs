//! Fragments of the built-in kinds: discovery at once, OpenAPI when there is time.

mod described;
mod discovery;
pub(crate) mod openapi;

use std::sync::Arc;

use portico_kinds::KindInfo;
use portico_machinery::GroupVersion;
use portico_schema::TypeSet;

use openapi::{Own, Words};

pub(crate) use described::{Described, Kind, Subresource};

/// Identifies the version of the code that makes documents: part of the names of what it makes.
pub(crate) const MADE_BY: &str = env!("PORTICO_OPENAPI_MADE_BY");

/// Everything that is published of one group version of built-in kinds.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// Which.
    pub group_version: GroupVersion,
    kinds: Vec<Arc<KindInfo>>,
    types: Arc<TypeSet>,
}

/// The fragment of these kinds, all of one group version. `types` holds all built-in types.
#[must_use]
pub fn fragment(group_version: GroupVersion, mut kinds: Vec<Arc<KindInfo>>, types: Arc<TypeSet>) -> Fragment {
    kinds.sort_by(|a, b| a.resource.cmp(&b.resource));
    Fragment { group_version, kinds, types }
}

impl Fragment {
    /// JSON of the aggregated discovery of the version.
    #[must_use]
    pub fn discovery(&self) -> Vec<u8> {
        self.described().discovery()
    }

    /// JSON of the `APIResourceList`.
    #[must_use]
    pub fn resource_list(&self) -> Vec<u8> {
        self.described().resource_list()
    }

    /// Everything that goes into the OpenAPI documents of a built-in group version, besides their version of OpenAPI:
    /// this code, its words, the data of all kinds by their `fingerprint`, and which of them are served.
    #[must_use]
    pub fn made_of(&self, fingerprint: &str) -> Vec<u8> {
        let mut inputs = format!("{MADE_BY}\n{fingerprint}\n{}", self.group_version);
        for kind in &self.kinds {
            inputs.push('\n');
            inputs.push_str(&kind.resource);
        }
        inputs.into_bytes()
    }

    /// JSON of the OpenAPI v3 document; `version` is the Kubernetes version in `info`.
    #[must_use]
    pub fn openapi_v3(&self, version: &str) -> Vec<u8> {
        openapi::v3(&self.described(), Own::new(), Some(&Words::open()), version)
    }

    /// JSON of the part of the OpenAPI v2 document.
    #[must_use]
    pub fn openapi_v2(&self) -> Vec<u8> {
        openapi::v2(&self.described(), Own::new(), Some(&Words::open()))
    }

    fn described(&self) -> Described<'_> {
        Described {
            group_version: &self.group_version,
            kinds: self.kinds.iter().map(|kind| Kind::from(&**kind)).collect(),
            types: &self.types,
            custom: false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
