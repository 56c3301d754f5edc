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

use super::fetch::{Answer, Fetch, Get};
use super::known::{Described, Document, Job, V2};
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
pub(super) async fn fetch(
    fetch: &dyn Fetch,
    job: &Job,
    documents: &Documents,
) -> (Described, Result<(), String>) {
    let mut described = Described::clone(&job.described);
    let index = get(fetch, job, "/openapi/v3", "").await;
    let own_v3 = match index {
        Ok(answer) if answer.status == 200 => {
            v3(fetch, job, &answer, documents, &mut described).await.map(|()| true)
        }
        Ok(answer) if answer.status == 404 => Ok(false),
        Ok(answer) => Err(format!("GET /openapi/v3 answered {}", answer.status)),
        Err(error) => Err(error),
    };
    let v2 = v2(fetch, job, documents, own_v3 == Ok(false), &mut described).await;
    if own_v3 == Ok(false) {
        let made = described.v2.converted.iter();
        described.v3 = made.map(|(gv, hash)| (gv.clone(), converted(hash))).collect();
    }
    described.v3.retain(|gv, _| job.members.contains(gv));
    (described, own_v3.map(|_| ()).and(v2))
}

fn converted(hash: &str) -> Document {
    Document { hash: hash.to_owned(), ..Document::default() }
}

async fn get(fetch: &dyn Fetch, job: &Job, path: &str, if_none_match: &str) -> Result<Answer, String> {
    let accept = if path == "/openapi/v3" { "" } else { "application/json" };
    let get = Get {
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
async fn v3(
    fetch: &dyn Fetch,
    job: &Job,
    answer: &Answer,
    documents: &Documents,
    described: &mut Described,
) -> Result<(), String> {
    let index: Index = json::from_slice(&answer.body).map_err(|e| format!("GET /openapi/v3: {e}"))?;
    let mut result = Ok(());
    let mut kept = HashMap::new();
    for gv in &job.members {
        let key = gv.root().trim_start_matches('/').to_owned();
        let Some(entry) = index.paths.get(&key) else { continue };
        // An unchanged address with a hash means an unchanged document; documents without a hash are fetched each time.
        let old = described.v3.get(gv);
        if let Some(old) = old.filter(|old| old.address == entry.url && entry.url.contains("hash=")) {
            kept.insert(gv.clone(), old.clone());
            continue;
        }
        match one(fetch, job, &entry.url, old, documents).await {
            Ok(document) => {
                kept.insert(gv.clone(), document);
            }
            Err(error) => {
                kept.extend(old.map(|old| (gv.clone(), old.clone())));
                result = Err(error);
            }
        }
    }
    described.v3 = kept;
    result
}

async fn one(
    fetch: &dyn Fetch,
    job: &Job,
    url: &str,
    old: Option<&Document>,
    documents: &Documents,
) -> Result<Document, String> {
    if !url.starts_with("/openapi/v3/") {
        return Err(format!(
            "the index of /openapi/v3 contains {url:?}, which is not a path below /openapi/v3"
        ));
    }
    let answer = get(fetch, job, url, old.map_or("", |o| o.etag.as_str())).await?;
    match (answer.status, old) {
        (304, Some(old)) => Ok(Document { address: url.to_owned(), ..old.clone() }),
        (200, _) => {
            serde_json::from_slice::<serde::de::IgnoredAny>(&answer.body)
                .map_err(|e| format!("GET {url}: {e}"))?;
            let hash = documents.put(&answer.body);
            Ok(Document { address: url.to_owned(), etag: answer.etag, hash })
        }
        (status, _) => Err(format!("GET {url} answered {status}")),
    }
}

/// Fetches version 2, and extracts the parts of the members if the document or the members have changed.
async fn v2(
    fetch: &dyn Fetch,
    job: &Job,
    documents: &Documents,
    convert: bool,
    described: &mut Described,
) -> Result<(), String> {
    let old = described.v2.clone();
    let usable =
        old.members == job.members && (!convert || !old.converted.is_empty() || old.parts.is_empty());
    let answer = get(fetch, job, "/openapi/v2", if usable { &old.etag } else { "" }).await?;
    match answer.status {
        304 if usable => return Ok(()),
        200 => {}
        404 => {
            described.v2 = Arc::default();
            return Ok(());
        }
        status => return Err(format!("GET /openapi/v2 answered {status}")),
    }
    let body = sha256_hex(&answer.body);
    if usable && old.body == body {
        return Ok(());
    }
    let whole = SpecV2::canonical(&answer.body).map_err(|e| format!("GET /openapi/v2: {e}"))?;
    let mut v2 = V2 { etag: answer.etag, body, members: job.members.clone(), ..V2::default() };
    for gv in &job.members {
        let part = part(&whole, gv);
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
    described.v2 = Arc::new(v2);
    Ok(())
}

/// Returns the paths of a member and the types that they refer to.
fn part(whole: &SpecV2, gv: &GroupVersion) -> SpecV2 {
    let (root, below) = (gv.root(), gv.root() + "/");
    let mut part = whole.clone();
    part.retain_paths(|path| path == root || path.starts_with(&below));
    part
}
