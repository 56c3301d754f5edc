//! Fragments of what is served here: discovery at once, OpenAPI when there is time.

mod discovery;
mod openapi;

use std::sync::Arc;

use portico_kinds::KindInfo;
use portico_machinery::GroupVersion;
use portico_machinery::discovery::Source;
use portico_schema::TypeSet;

/// Everything that is published of one group version.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// Which.
    pub group_version: GroupVersion,
    /// Built in, or of custom resource definitions.
    pub source: Source,
    kinds: Vec<Arc<KindInfo>>,
    types: Arc<TypeSet>,
}

/// The fragment of these kinds, all of one group version. `types` holds the types of `meta/v1`.
#[must_use]
pub fn fragment(
    group_version: GroupVersion,
    source: Source,
    mut kinds: Vec<Arc<KindInfo>>,
    types: Arc<TypeSet>,
) -> Fragment {
    kinds.sort_by(|a, b| a.resource.cmp(&b.resource));
    Fragment { group_version, source, kinds, types }
}

impl Fragment {
    /// JSON of the aggregated discovery of the version.
    #[must_use]
    pub fn discovery(&self) -> Vec<u8> {
        discovery::version(self)
    }

    /// JSON of the `APIResourceList`.
    #[must_use]
    pub fn resource_list(&self) -> Vec<u8> {
        discovery::resource_list(self)
    }

    /// Everything that goes into the OpenAPI documents of a built-in group version, besides their version of OpenAPI:
    /// this code, its words, the data of all kinds by their `fingerprint`, and which of them are served.
    #[must_use]
    pub fn made_of(&self, fingerprint: &str) -> Vec<u8> {
        let mut inputs =
            format!("{}\n{fingerprint}\n{}", env!("PORTICO_OPENAPI_MADE_BY"), self.group_version);
        for kind in &self.kinds {
            inputs.push('\n');
            inputs.push_str(&kind.resource);
        }
        inputs.into_bytes()
    }

    /// JSON of the OpenAPI v3 document; `version` is the Kubernetes version in `info`.
    #[must_use]
    pub fn openapi_v3(&self, version: &str) -> Vec<u8> {
        openapi::v3(self, Some(&openapi::Words::open()), version)
    }

    /// JSON of the part of the OpenAPI v2 document.
    #[must_use]
    pub fn openapi_v2(&self) -> Vec<u8> {
        openapi::v2(self, Some(&openapi::Words::open()))
    }
}

#[cfg(test)]
mod tests;
