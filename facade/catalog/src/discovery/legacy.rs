//! The legacy documents: `APIVersions`, `APIGroupList`, `APIGroup`.

use bytes::Bytes;
use portico_machinery::discovery::{ApiGroup, GroupVersionForDiscovery};
use serde::Serialize;

use super::AddressRule;
use super::json::encode;
use crate::snapshot::Group;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiVersions<'a> {
    kind: &'static str,
    versions: [&'static str; 1],
    #[serde(rename = "serverAddressByClientCIDRs")]
    server_addresses: Vec<ServerAddress<'a>>,
}

#[derive(Serialize)]
struct ServerAddress<'a> {
    #[serde(rename = "clientCIDR")]
    client_cidr: String,
    #[serde(rename = "serverAddress")]
    server_address: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroupList {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<ApiGroup>,
}

/// Builds the document of `/api`; like upstream, without `apiVersion`.
pub(super) fn versions(server_address: &str, rule: Option<&AddressRule>) -> Bytes {
    let default_address = ServerAddress { client_cidr: "0.0.0.0/0".to_owned(), server_address };
    let rule_address = rule.map(|AddressRule { clients, address }| ServerAddress {
        client_cidr: clients.to_string(),
        server_address: address,
    });
    encode(&ApiVersions {
        kind: "APIVersions",
        versions: ["v1"],
        server_addresses: std::iter::once(default_address).chain(rule_address).collect(),
    })
}

/// Builds the document of `/apis`.
pub(super) fn group_list(groups: &[Group]) -> Bytes {
    let groups = groups.iter().map(|g| api_group(g, false)).collect();
    encode(&ApiGroupList { kind: "APIGroupList", api_version: "v1", groups })
}

/// Builds the document of `/apis/<group>`.
pub(super) fn group(group: &Group) -> Bytes {
    encode(&api_group(group, true))
}

fn api_group(group: &Group, is_top_level: bool) -> ApiGroup {
    let version = |v: &String| GroupVersionForDiscovery {
        group_version: format!("{}/{v}", group.name),
        version: v.clone(),
    };
    let versions: Vec<_> = group.versions.iter().map(version).collect();
    let preferred_version = versions.first().cloned().unwrap_or_default();
    let (kind, api_version) = if is_top_level { ("APIGroup", "v1") } else { ("", "") };
    ApiGroup {
        kind: kind.to_owned(),
        api_version: api_version.to_owned(),
        name: group.name.clone(),
        versions,
        preferred_version,
    }
}
