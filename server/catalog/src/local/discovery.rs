//! Discovery of kinds as data: the aggregated form and the legacy list.
//!
//! Built-in kinds say group and version of a kind only where they differ from the resource's; custom resources always do.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_kinds::{KindInfo, Subresource};
use portico_machinery::discovery::{
    ApiResource, ApiResourceList, ResourceDiscovery, ResponseKind, Source, SubresourceDiscovery,
    VersionDiscovery,
};
use portico_machinery::gvk::GroupVersionKind;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Fragment;

/// The aggregated document of one version.
pub(super) fn version(fragment: &Fragment) -> Vec<u8> {
    encode(&VersionDiscovery {
        version: fragment.group_version.version.clone(),
        resources: fragment.kinds.iter().map(|kind| resource(fragment, kind)).collect(),
        freshness: "Current".to_owned(),
    })
}

fn resource(fragment: &Fragment, kind: &KindInfo) -> ResourceDiscovery {
    ResourceDiscovery {
        resource: kind.resource.clone(),
        response_kind: response_kind(fragment, &kind.gvk),
        scope: if kind.namespaced { "Namespaced" } else { "Cluster" }.to_owned(),
        singular_resource: kind.singular.clone(),
        verbs: kind.verbs.clone(),
        short_names: kind.short_names.clone(),
        categories: kind.categories.clone(),
        subresources: kind.subresources.iter().map(|s| subresource(fragment, s)).collect(),
    }
}

fn subresource(fragment: &Fragment, subresource: &Subresource) -> SubresourceDiscovery {
    SubresourceDiscovery {
        subresource: subresource.name.clone(),
        response_kind: response_kind(fragment, &subresource.kind),
        verbs: subresource.verbs.clone(),
    }
}

fn response_kind(fragment: &Fragment, gvk: &GroupVersionKind) -> ResponseKind {
    if foreign(fragment, gvk) || fragment.source == Source::Crd {
        return ResponseKind::from(gvk);
    }
    ResponseKind { kind: gvk.kind.clone(), ..ResponseKind::default() }
}

fn foreign(fragment: &Fragment, gvk: &GroupVersionKind) -> bool {
    gvk.group_version() != fragment.group_version
}

/// The legacy list; the core group's has no `apiVersion`.
pub(super) fn resource_list(fragment: &Fragment) -> Vec<u8> {
    let gv = &fragment.group_version;
    let api_version = if gv.is_core() { "" } else { "v1" };
    let mut resources = Vec::new();
    for kind in &fragment.kinds {
        resources.push(api_resource(fragment, kind));
        resources.extend(kind.subresources.iter().map(|s| api_subresource(fragment, kind, s)));
    }
    encode(&ApiResourceList {
        kind: "APIResourceList".to_owned(),
        api_version: api_version.to_owned(),
        group_version: gv.to_string(),
        resources,
    })
}

fn api_resource(fragment: &Fragment, kind: &KindInfo) -> ApiResource {
    ApiResource {
        name: kind.resource.clone(),
        singular_name: kind.singular.clone(),
        short_names: kind.short_names.clone(),
        categories: kind.categories.clone(),
        storage_version_hash: storage_version_hash(kind),
        ..named(fragment, kind, &kind.gvk, &kind.verbs)
    }
}

fn api_subresource(fragment: &Fragment, kind: &KindInfo, subresource: &Subresource) -> ApiResource {
    ApiResource {
        name: format!("{}/{}", kind.resource, subresource.name),
        ..named(fragment, kind, &subresource.kind, &subresource.verbs)
    }
}

fn named(fragment: &Fragment, kind: &KindInfo, gvk: &GroupVersionKind, verbs: &[String]) -> ApiResource {
    let (group, version) = match foreign(fragment, gvk) {
        true => (gvk.group.clone(), gvk.version.clone()),
        false => (String::new(), String::new()),
    };
    ApiResource {
        namespaced: kind.namespaced,
        group,
        version,
        kind: gvk.kind.clone(),
        verbs: verbs.to_vec(),
        ..ApiResource::default()
    }
}

/// Upstream's hash of `group/version/kind` as stored; nothing for kinds that are not stored.
fn storage_version_hash(kind: &KindInfo) -> String {
    if !kind.has_verb("list") {
        return String::new();
    }
    let stored = format!("{}/{}/{}", kind.storage.group, kind.storage_version, kind.gvk.kind);
    STANDARD.encode(&Sha256::digest(stored.as_bytes())[..8])
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    // Structs of strings always encode.
    serde_json::to_vec(value).unwrap_or_default()
}
