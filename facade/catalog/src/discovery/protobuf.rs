//! Encodes discovery documents in protobuf, from their JSON.

use bytes::Bytes;
use portico_machinery::discovery::{
    ApiGroup, ApiResource, ApiResourceList, GroupVersionForDiscovery, ResourceDiscovery, ResponseKind,
    SubresourceDiscovery, VersionDiscovery,
};
use portico_machinery::protobuf::{Writer, encode_envelope};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TypeMeta {
    kind: String,
    api_version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Versions {
    versions: Vec<String>,
    #[serde(rename = "serverAddressByClientCIDRs")]
    addresses: Vec<Address>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Address {
    #[serde(rename = "clientCIDR")]
    client_cidr: String,
    server_address: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Groups {
    groups: Vec<ApiGroup>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Aggregated {
    items: Vec<AggregatedGroup>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedGroup {
    metadata: Metadata,
    versions: Vec<VersionDiscovery>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

/// Encodes a JSON document of this crate as a message in its envelope.
pub(super) fn encode(json: &[u8]) -> Bytes {
    let TypeMeta { kind, api_version } = decode(json);
    let mut w = Writer::default();
    match kind.as_str() {
        "APIVersions" => versions(&mut w, &decode(json)),
        "APIGroupList" => {
            let Groups { groups } = decode(json);
            groups.iter().for_each(|g| w.message(1, |w| group(w, g)));
        }
        "APIGroup" => group(&mut w, &decode(json)),
        "APIResourceList" => resources(&mut w, &decode(json)),
        _ => write_aggregated(&mut w, &decode(json)),
    }
    encode_envelope(&api_version, &kind, &w.into_bytes()).into()
}

/// Decodes a JSON document of this crate; returns an empty one on failure, which does not occur.
fn decode<T: DeserializeOwned + Default>(json: &[u8]) -> T {
    serde_json::from_slice(json).unwrap_or_default()
}

fn strings(w: &mut Writer, number: u32, texts: &[String]) {
    texts.iter().for_each(|text| w.string(number, text));
}

fn versions(w: &mut Writer, document: &Versions) {
    strings(w, 1, &document.versions);
    for address in &document.addresses {
        w.message(2, |w| {
            w.string(1, &address.client_cidr);
            w.string(2, &address.server_address);
        });
    }
}

fn group(w: &mut Writer, group: &ApiGroup) {
    let version = |w: &mut Writer, version: &GroupVersionForDiscovery| {
        w.string(1, &version.group_version);
        w.string(2, &version.version);
    };
    w.string(1, &group.name);
    group.versions.iter().for_each(|v| w.message(2, |w| version(w, v)));
    w.message(3, |w| version(w, &group.preferred_version));
}

fn resources(w: &mut Writer, document: &ApiResourceList) {
    w.string(1, &document.group_version);
    document.resources.iter().for_each(|r| w.message(2, |w| resource(w, r)));
}

fn resource(w: &mut Writer, resource: &ApiResource) {
    w.string(1, &resource.name);
    w.bool(2, resource.namespaced);
    w.string(3, &resource.kind);
    w.message(4, |w| strings(w, 1, &resource.verbs));
    strings(w, 5, &resource.short_names);
    w.string(6, &resource.singular_name);
    strings(w, 7, &resource.categories);
    w.string(8, &resource.group);
    w.string(9, &resource.version);
    w.string(10, &resource.storage_version_hash);
}

fn write_aggregated(w: &mut Writer, document: &Aggregated) {
    w.message(1, |w| [1, 2, 3].into_iter().for_each(|number| w.string(number, "")));
    for item in &document.items {
        w.message(2, |w| {
            w.message(1, |w| metadata(w, &item.metadata.name));
            item.versions.iter().for_each(|v| w.message(2, |w| version(w, v)));
        });
    }
}

/// Encodes the metadata of an object that only has a name.
fn metadata(w: &mut Writer, name: &str) {
    w.string(1, name);
    (2..=6).for_each(|number| w.string(number, ""));
    w.int(7, 0);
    w.message(8, |_| {});
}

fn version(w: &mut Writer, version: &VersionDiscovery) {
    w.string(1, &version.version);
    version.resources.iter().for_each(|r| w.message(2, |w| aggregated_resource(w, r)));
    w.string(3, &version.freshness);
}

fn aggregated_resource(w: &mut Writer, resource: &ResourceDiscovery) {
    w.string(1, &resource.resource);
    w.message(2, |w| response_kind(w, &resource.response_kind));
    w.string(3, &resource.scope);
    w.string(4, &resource.singular_resource);
    strings(w, 5, &resource.verbs);
    strings(w, 6, &resource.short_names);
    strings(w, 7, &resource.categories);
    resource.subresources.iter().for_each(|s| w.message(8, |w| subresource(w, s)));
}

fn subresource(w: &mut Writer, subresource: &SubresourceDiscovery) {
    w.string(1, &subresource.subresource);
    w.message(2, |w| response_kind(w, &subresource.response_kind));
    strings(w, 4, &subresource.verbs);
}

fn response_kind(w: &mut Writer, kind: &ResponseKind) {
    w.string(1, &kind.group);
    w.string(2, &kind.version);
    w.string(3, &kind.kind);
}

#[cfg(test)]
mod tests {
    use portico_machinery::protobuf::decode_envelope;

    use super::*;

    #[test]
    fn documents_keep_their_kind_and_content() {
        let json = br#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"a:1"}]}"#;
        let bytes = encode(json);
        let envelope = decode_envelope(&bytes).unwrap();
        assert_eq!((&*envelope.kind, &*envelope.api_version), ("APIVersions", ""));
        assert_eq!(envelope.raw, b"\x0a\x02v1\x12\x10\x0a\x090.0.0.0/0\x12\x03a:1");
        let json = br#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"g"},
            "versions":[{"version":"v1","resources":[{"resource":"r","responseKind":{},"verbs":["get"]}],"freshness":"Current"}]}]}"#;
        let bytes = encode(json);
        let envelope = decode_envelope(&bytes).unwrap();
        assert_eq!(&*envelope.kind, "APIGroupDiscoveryList");
        let version =
            b"\x0a\x02v1\x12\x14\x0a\x01r\x12\x06\x0a\0\x12\0\x1a\0\x1a\0\x22\0\x2a\x03get\x1a\x07Current";
        assert!(envelope.raw.ends_with(version), "{:?}", envelope.raw);
    }
}
