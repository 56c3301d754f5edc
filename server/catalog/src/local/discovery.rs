//! Generates discovery of described kinds: the aggregated form and the legacy list.
//!
//! Built-in kinds contain the group and version of a kind only if they differ from those of the resource; custom resources
//! always contain them.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_machinery::discovery::{
    ApiResource, ApiResourceList, ResourceDiscovery, ResponseKind, SubresourceDiscovery, VersionDiscovery,
};
use portico_machinery::gvk::GroupVersionKind;
use serde::Serialize;

use super::{GroupDescription, KindDescription, SubresourceDescription};

impl GroupDescription<'_> {
    /// Returns the JSON of the aggregated document of the version.
    pub(crate) fn discovery(&self) -> Vec<u8> {
        encode(&VersionDiscovery {
            version: self.group_version.version.clone(),
            resources: self.kinds.iter().map(|kind| self.resource(kind)).collect(),
            freshness: "Current".to_owned(),
        })
    }

    fn resource(&self, kind: &KindDescription<'_>) -> ResourceDiscovery {
        ResourceDiscovery {
            resource: kind.resource.to_owned(),
            response_kind: self.response_kind(&kind.gvk),
            scope: if kind.namespaced { "Namespaced" } else { "Cluster" }.to_owned(),
            singular_resource: kind.singular.to_owned(),
            verbs: to_strings(&kind.verbs),
            short_names: kind.short_names.to_vec(),
            categories: kind.categories.to_vec(),
            subresources: kind.subresources.iter().map(|s| self.subresource(s)).collect(),
        }
    }

    fn subresource(&self, subresource: &SubresourceDescription<'_>) -> SubresourceDiscovery {
        SubresourceDiscovery {
            subresource: subresource.name.to_owned(),
            response_kind: self.response_kind(&subresource.kind),
            verbs: to_strings(&subresource.verbs),
        }
    }

    fn response_kind(&self, gvk: &GroupVersionKind) -> ResponseKind {
        if self.is_custom || self.is_foreign(gvk) {
            return ResponseKind::from(gvk);
        }
        ResponseKind { kind: gvk.kind.clone(), ..ResponseKind::default() }
    }

    fn is_foreign(&self, gvk: &GroupVersionKind) -> bool {
        gvk.group_version() != *self.group_version
    }

    /// Returns the JSON of the legacy list. The list of the core group has no `apiVersion`.
    pub(crate) fn resource_list(&self) -> Vec<u8> {
        let gv = self.group_version;
        let api_version = if gv.is_core() { "" } else { "v1" };
        let mut resources = Vec::new();
        for kind in &self.kinds {
            resources.push(self.api_resource(kind));
            resources.extend(kind.subresources.iter().map(|s| self.api_subresource(kind, s)));
        }
        encode(&ApiResourceList {
            kind: "APIResourceList".to_owned(),
            api_version: api_version.to_owned(),
            group_version: gv.to_string(),
            resources,
        })
    }

    fn api_resource(&self, kind: &KindDescription<'_>) -> ApiResource {
        ApiResource {
            name: kind.resource.to_owned(),
            singular_name: kind.singular.to_owned(),
            short_names: kind.short_names.to_vec(),
            categories: kind.categories.to_vec(),
            storage_version_hash: storage_version_hash(&kind.stored_as),
            ..self.api_resource_of_kind(kind, &kind.gvk, &kind.verbs)
        }
    }

    fn api_subresource(
        &self,
        kind: &KindDescription<'_>,
        subresource: &SubresourceDescription<'_>,
    ) -> ApiResource {
        ApiResource {
            name: format!("{}/{}", kind.resource, subresource.name),
            ..self.api_resource_of_kind(kind, &subresource.kind, &subresource.verbs)
        }
    }

    fn api_resource_of_kind(
        &self,
        kind: &KindDescription<'_>,
        gvk: &GroupVersionKind,
        verbs: &[&str],
    ) -> ApiResource {
        let (group, version) = match self.is_foreign(gvk) {
            true => (gvk.group.clone(), gvk.version.clone()),
            false => (String::new(), String::new()),
        };
        ApiResource {
            namespaced: kind.namespaced,
            group,
            version,
            kind: gvk.kind.clone(),
            verbs: to_strings(verbs),
            ..ApiResource::default()
        }
    }
}

/// Returns upstream's hash of the stored `group/version/kind`; empty if `stored_as` is empty.
fn storage_version_hash(stored_as: &str) -> String {
    if stored_as.is_empty() {
        return String::new();
    }
    STANDARD.encode(&digest(&SHA256, stored_as.as_bytes()).as_ref()[..8])
}

fn to_strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&word| word.to_owned()).collect()
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    // Encoding structs of strings cannot fail.
    serde_json::to_vec(value).unwrap_or_default()
}
