//! Fetches the OpenAPI documents of a service: version 3 document by document, and version 2 as a whole, from which the parts of
//! group versions are extracted.
//!
//! If a backend has no version 3, its version 2 is converted, as upstream.

mod convert;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use portico_gostd::json;
use portico_machinery::GroupVersion;
use portico_machinery::digest::sha256_hex;
use portico_machinery::openapi::SpecV2;
use serde::Deserialize;

use super::fetch::{Fetch, FetchedDocument, GetRequest};
use super::service_state::{FetchJob, OpenApiDocuments, V2Document, V3Document};
use crate::documents::Documents;

const USER: &str = "system:aggregator";
/// Time to fetch an OpenAPI document of a backend.
///
/// Limit (Backends): the fetch fails.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Size of an OpenAPI document of a backend.
///
/// Limit (Backends, bytes): the fetch fails.
const MAX_BODY: usize = 32 << 20;

/// Fetches once. Returns the current documents and any error; documents that could not be fetched remain as they were.
pub(super) async fn fetch_openapi(
    fetch: &dyn Fetch,
    job: &FetchJob,
    documents: &Documents,
) -> (OpenApiDocuments, Result<(), String>) {
    let mut current = OpenApiDocuments::clone(&job.openapi);
    let index = send_get(fetch, job, "/openapi/v3", "").await;
    let has_v3 = match index {
        Ok(response) if response.status == 200 => {
            fetch_v3(fetch, job, &response, documents, &mut current).await.map(|()| true)
        }
        Ok(response) if response.status == 404 => Ok(false),
        Ok(response) => Err(format!("GET /openapi/v3 returned {}", response.status)),
        Err(error) => Err(error),
    };
    let v2 = fetch_v2(fetch, job, documents, has_v3 == Ok(false), &mut current).await;
    if has_v3 == Ok(false) {
        let converted = current.v2.converted.iter();
        current.v3 = converted.map(|(gv, hash)| (gv.clone(), converted_document(hash))).collect();
    }
    current.v3.retain(|gv, _| job.members.contains(gv));
    (current, has_v3.map(|_| ()).and(v2))
}

fn converted_document(hash: &str) -> V3Document {
    V3Document { hash: hash.to_owned(), ..V3Document::default() }
}

async fn send_get(
    fetch: &dyn Fetch,
    job: &FetchJob,
    path: &str,
    if_none_match: &str,
) -> Result<FetchedDocument, String> {
    let accept = if path == "/openapi/v3" { "" } else { "application/json" };
    let get = GetRequest {
        backend: &job.backend,
        path,
        accept,
        if_none_match,
        user: USER,
        groups: &[],
        timeout: TIMEOUT,
        max_body: MAX_BODY,
    };
    fetch.get(get).await.map_err(|e| format!("GET {path}: {e}"))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Index {
    paths: HashMap<String, IndexEntry>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct IndexEntry {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

/// Fetches the members' documents that the index lists. Other documents are ignored, because no APIService refers to them.
async fn fetch_v3(
    fetch: &dyn Fetch,
    job: &FetchJob,
    index_response: &FetchedDocument,
    documents: &Documents,
    current: &mut OpenApiDocuments,
) -> Result<(), String> {
    let index: Index = json::from_slice(&index_response.body).map_err(|e| format!("GET /openapi/v3: {e}"))?;
    let mut result = Ok(());
    let mut v3 = HashMap::new();
    for gv in &job.members {
        let key = gv.root().trim_start_matches('/').to_owned();
        let Some(entry) = index.paths.get(&key) else { continue };
        // An unchanged address with a hash means an unchanged document; documents without a hash are fetched each time.
        let old = current.v3.get(gv);
        if let Some(old) = old.filter(|old| old.address == entry.url && entry.url.contains("hash=")) {
            v3.insert(gv.clone(), old.clone());
            continue;
        }
        match fetch_document(fetch, job, &entry.url, old, documents).await {
            Ok(document) => {
                v3.insert(gv.clone(), document);
            }
            Err(error) => {
                v3.extend(old.map(|old| (gv.clone(), old.clone())));
                result = Err(error);
            }
        }
    }
    current.v3 = v3;
    result
}

async fn fetch_document(
    fetch: &dyn Fetch,
    job: &FetchJob,
    url: &str,
    old: Option<&V3Document>,
    documents: &Documents,
) -> Result<V3Document, String> {
    if !url.starts_with("/openapi/v3/") {
        return Err(format!(
            "the index of /openapi/v3 contains {url:?}, which is not a path below /openapi/v3"
        ));
    }
    let response = send_get(fetch, job, url, old.map_or("", |o| o.etag.as_str())).await?;
    match (response.status, old) {
        (304, Some(old)) => Ok(V3Document { address: url.to_owned(), ..old.clone() }),
        (200, _) => {
            serde_json::from_slice::<serde::de::IgnoredAny>(&response.body)
                .map_err(|e| format!("GET {url}: {e}"))?;
            let hash = documents.put(&response.body);
            Ok(V3Document { address: url.to_owned(), etag: response.etag, hash })
        }
        (status, _) => Err(format!("GET {url} returned {status}")),
    }
}

/// Fetches version 2, and extracts the parts of the members if the document or the members have changed.
async fn fetch_v2(
    fetch: &dyn Fetch,
    job: &FetchJob,
    documents: &Documents,
    convert: bool,
    current: &mut OpenApiDocuments,
) -> Result<(), String> {
    let old = current.v2.clone();
    let can_reuse =
        old.members == job.members && (!convert || !old.converted.is_empty() || old.parts.is_empty());
    let response = send_get(fetch, job, "/openapi/v2", if can_reuse { &old.etag } else { "" }).await?;
    match response.status {
        304 if can_reuse => return Ok(()),
        200 => {}
        404 => {
            current.v2 = Arc::default();
            return Ok(());
        }
        status => return Err(format!("GET /openapi/v2 returned {status}")),
    }
    let body_hash = sha256_hex(&response.body);
    if can_reuse && old.body_hash == body_hash {
        return Ok(());
    }
    let spec = SpecV2::canonical(&response.body).map_err(|e| format!("GET /openapi/v2: {e}"))?;
    let mut v2 =
        V2Document { etag: response.etag, body_hash, members: job.members.clone(), ..V2Document::default() };
    for gv in &job.members {
        let part = extract_part(&spec, gv);
        if part.paths.is_empty() {
            continue;
        }
        if convert {
            v2.converted.insert(gv.clone(), documents.put(&convert::v3(&part)));
        }
        v2.parts.insert(gv.clone(), documents.put(&part.to_json()));
        // Extraction is CPU-bound: lets other tasks run between parts.
        tokio::task::yield_now().await;
    }
    current.v2 = Arc::new(v2);
    Ok(())
}

/// Returns the paths of a member and the types that they refer to.
fn extract_part(spec: &SpecV2, gv: &GroupVersion) -> SpecV2 {
    let (root, root_prefix) = (gv.root(), gv.root() + "/");
    let mut part = spec.clone();
    part.retain_paths(|path| path == root || path.starts_with(&root_prefix));
    part
}
