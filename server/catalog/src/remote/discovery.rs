//! Fetches the discovery of a service: the aggregated document, or the legacy lists of its group versions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use portico_gostd::json::{self, Readable};
use portico_gostd::mime::parse_media_type;
use portico_machinery::GroupVersion;
use portico_machinery::discovery::{ResourceDiscovery, ResponseKind, SubresourceDiscovery, VersionDiscovery};
use portico_machinery::user::{AGGREGATOR, MASTERS};
use serde::Deserialize;

use super::fetch::{Fetch, FetchedDocument, GetRequest};
use super::legacy;
use super::readable_entries::readable_entries;
use super::service_state::{FetchJob, ServiceDiscovery};

const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Time to fetch a discovery document of a backend.
///
/// Limit (Backends): the fetch fails.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Size of a discovery document of a backend.
///
/// Limit (Backends, bytes): the fetch fails.
const MAX_BODY: usize = 4 << 20;
/// Maximum number of lists fetched from one service at the same time.
const MAX_CONCURRENT_LISTS: usize = 4;

/// Fetches once. Errors describe the failure for the log.
pub(super) async fn fetch_discovery(
    fetch: &dyn Fetch,
    job: &FetchJob,
) -> Result<Arc<ServiceDiscovery>, String> {
    let etag = job.discovery.as_ref().map_or("", |last| last.etag.as_str());
    let get = GetRequest {
        backend: &job.backend,
        path: "/apis",
        accept: ACCEPT,
        if_none_match: etag,
        user: AGGREGATOR,
        groups: &[MASTERS],
        timeout: TIMEOUT,
        max_body: MAX_BODY,
    };
    // A failed fetch counts as 503: no legacy lists are fetched.
    let response = fetch.get(get).await.map_err(|e| e.to_string())?;
    match (response.status, &job.discovery) {
        (304, Some(last)) if !etag.is_empty() => Ok(last.clone()),
        (503, _) => Err("GET /apis returned 503".to_owned()),
        (200, _) if is_aggregated(&response.content_type) => parse_aggregated(&response).map(Arc::new),
        _ => Ok(Arc::new(fetch_legacy_lists(fetch, job).await)),
    }
}

/// Returns true for the media type of aggregated discovery v2, with parameters in any order.
fn is_aggregated(content_type: &str) -> bool {
    parse_media_type(content_type).is_ok_and(|media| {
        let params: Vec<_> = media.params.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let expected = [("as", "APIGroupDiscoveryList"), ("g", "apidiscovery.k8s.io"), ("v", "v2")];
        media.essence == "application/json" && params == expected
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List {
    items: Readable<Item>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: Metadata,
    versions: Readable<Version>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

/// Like [`VersionDiscovery`], with fields that old servers omit.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    version: String,
    resources: Readable<Resource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Resource {
    resource: String,
    response_kind: Option<ResponseKind>,
    scope: String,
    singular_resource: String,
    verbs: Vec<String>,
    short_names: Vec<String>,
    categories: Vec<String>,
    subresources: Readable<Subresource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Subresource {
    subresource: String,
    response_kind: Option<ResponseKind>,
    verbs: Vec<String>,
}

fn parse_aggregated(response: &FetchedDocument) -> Result<ServiceDiscovery, String> {
    let list: List = json::from_slice(&response.body).map_err(|e| format!("GET /apis: {e}"))?;
    let mut versions = HashMap::new();
    for item in readable_entries("/apis", list.items) {
        for version in readable_entries(&item.metadata.name, item.versions) {
            let gv = GroupVersion::new(&item.metadata.name, &version.version);
            versions.insert(gv, version.into());
        }
    }
    Ok(ServiceDiscovery {
        etag: response.etag.clone(),
        versions,
        is_complete: true,
        failures: BTreeMap::new(),
    })
}

impl From<Version> for VersionDiscovery {
    fn from(version: Version) -> Self {
        let subresource = |s: Subresource| SubresourceDiscovery {
            subresource: s.subresource,
            response_kind: s.response_kind.unwrap_or_default(),
            verbs: s.verbs,
        };
        let resource = |r: Resource| ResourceDiscovery {
            subresources: readable_entries(&r.resource, r.subresources)
                .into_iter()
                .map(subresource)
                .collect(),
            resource: r.resource,
            response_kind: r.response_kind.unwrap_or_default(),
            scope: r.scope,
            singular_resource: r.singular_resource,
            verbs: r.verbs,
            short_names: r.short_names,
            categories: r.categories,
        };
        Self {
            resources: readable_entries(&version.version, version.resources)
                .into_iter()
                .map(resource)
                .collect(),
            version: version.version,
            freshness: "Current".to_owned(),
        }
    }
}

/// Fetches the lists of the available members independently: a failed list does not affect the others.
async fn fetch_legacy_lists(fetch: &dyn Fetch, job: &FetchJob) -> ServiceDiscovery {
    let lists = job.available.iter().cloned().map(|gv| async move {
        let list = fetch_legacy_list(fetch, job, &gv).await;
        (gv, list)
    });
    let mut lists = stream::iter(lists).buffer_unordered(MAX_CONCURRENT_LISTS);
    let mut found = ServiceDiscovery::default();
    while let Some((gv, list)) = lists.next().await {
        match list {
            Ok(version) => drop(found.versions.insert(gv, version)),
            Err(reason) => drop(found.failures.insert(gv, reason)),
        }
    }
    found
}

async fn fetch_legacy_list(
    fetch: &dyn Fetch,
    job: &FetchJob,
    gv: &GroupVersion,
) -> Result<VersionDiscovery, String> {
    let path = gv.root();
    let get = GetRequest {
        backend: &job.backend,
        path: &path,
        accept: "application/json",
        if_none_match: "",
        user: AGGREGATOR,
        groups: &[],
        timeout: TIMEOUT,
        max_body: MAX_BODY,
    };
    let response = fetch.get(get).await.map_err(|e| format!("GET {path}: {e}"))?;
    if response.status != 200 {
        return Err(format!("GET {path} returned {}", response.status));
    }
    legacy::convert(gv, &response.body).map_err(|e| format!("GET {path}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_empty_and_an_invalid_entry_is_skipped() {
        let rows = [
            (r#"{"items":null}"#, ""),
            (r#"{"items":[{"metadata":{"name":"g"},"versions":null}]}"#, ""),
            (
                r#"{"items":[{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":null}]}]}"#,
                "g/v1:",
            ),
            (
                r#"{"items":[7,{"metadata":{"name":"g","labels":null},"versions":[{"version":"v1","freshness":null,"resources":[
                {"resource":"a","verbs":null,"shortNames":null,"categories":null,"responseKind":null,"subresources":null},
                {"resource":"b","verbs":"get"},{"resource":"c","subresources":[{"subresource":"status","verbs":null},8]}]}]}]}"#,
                "g/v1: a c",
            ),
        ];
        for (body, expected) in rows {
            let response = FetchedDocument {
                status: 200,
                content_type: String::new(),
                etag: String::new(),
                body: body.as_bytes().to_vec().into(),
            };
            let found = parse_aggregated(&response).unwrap();
            let mut read = found.versions.iter().map(|(gv, version)| {
                version.resources.iter().fold(format!("{gv}:"), |text, r| format!("{text} {}", r.resource))
            });
            assert_eq!(read.next().unwrap_or_default(), expected, "{body}");
        }
    }
}
