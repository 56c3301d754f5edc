//! Fragments of the built-in kinds.

mod description;
mod discovery;
pub(crate) mod openapi;

use std::sync::Arc;

use portico_kinds::KindInfo;
use portico_machinery::GroupVersion;
use portico_schema::TypeSet;

use openapi::{CustomTypes, Descriptions};

pub(crate) use description::{GroupDescription, KindDescription, SubresourceDescription};

/// Identifies the version of the code that generates documents; part of the names of documents.
pub(crate) const GENERATOR_VERSION: &str = env!("PORTICO_OPENAPI_MADE_BY");

/// Data published about one group version of built-in kinds.
#[derive(Clone, Debug)]
pub struct Fragment {
    pub group_version: GroupVersion,
    kinds: Vec<Arc<KindInfo>>,
    types: Arc<TypeSet>,
}

/// Creates the fragment of these kinds, which belong to one group version. `types` contains all built-in types.
#[must_use]
pub fn new_fragment(
    group_version: GroupVersion,
    mut kinds: Vec<Arc<KindInfo>>,
    types: Arc<TypeSet>,
) -> Fragment {
    kinds.sort_by(|a, b| a.resource.cmp(&b.resource));
    Fragment { group_version, kinds, types }
}

impl Fragment {
    /// Returns the JSON of the aggregated discovery of the version.
    #[must_use]
    pub fn discovery(&self) -> Vec<u8> {
        self.description().discovery()
    }

    /// Returns the JSON of the `APIResourceList`.
    #[must_use]
    pub fn resource_list(&self) -> Vec<u8> {
        self.description().resource_list()
    }

    /// Returns the inputs of the OpenAPI documents of a built-in group version, other than the version of OpenAPI: this code, its
    /// descriptions, the data of all kinds by their `fingerprint`, and the set of served kinds.
    #[must_use]
    pub fn openapi_inputs(&self, fingerprint: &str) -> Vec<u8> {
        let mut inputs = format!("{GENERATOR_VERSION}\n{fingerprint}\n{}", self.group_version);
        for kind in &self.kinds {
            inputs.push('\n');
            inputs.push_str(&kind.resource);
        }
        inputs.into_bytes()
    }

    /// Returns the JSON of the OpenAPI v3 document; `version` is the Kubernetes version in `info`.
    #[must_use]
    pub fn openapi_v3(&self, version: &str) -> Vec<u8> {
        openapi::v3_document(&self.description(), CustomTypes::new(), Some(&Descriptions::open()), version)
    }

    /// Returns the JSON of the part of the OpenAPI v2 document.
    #[must_use]
    pub fn openapi_v2(&self) -> Vec<u8> {
        openapi::v2_part(&self.description(), CustomTypes::new(), Some(&Descriptions::open()))
    }

    fn description(&self) -> GroupDescription<'_> {
        GroupDescription {
            group_version: &self.group_version,
            kinds: self.kinds.iter().map(|kind| KindDescription::from(&**kind)).collect(),
            types: &self.types,
            is_custom: false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
