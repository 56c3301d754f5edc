//! OpenAPI: the version 3 index and documents, and the merged version 2 document.
//!
//! Mirrors upstream's OpenAPI aggregators, and behavior that a real server showed. Documents of backends are those that the
//! control service fetched, with Portico's tags, so that an address in the index always returns the content with its hash.

mod form;
mod general;
mod gzip;
mod merged_document;
mod protobuf;
mod serving;
mod v2;

pub(crate) use merged_document::MergedDocument;

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use portico_machinery::GroupVersion;
use portico_machinery::digest::digits;
use portico_machinery::discovery::{ServedVersion, Source};
use serde::Serialize;

use crate::catalog_state::CatalogState;
use crate::request::{Reply, Request, value};
use crate::snapshot::Snapshot;
use form::Form;
use serving::Body;

#[derive(Serialize)]
struct Index {
    paths: BTreeMap<String, IndexEntry>,
}

#[derive(Serialize)]
struct IndexEntry {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

/// Serves `/openapi/v3`: the addresses of all documents; any Accept.
pub(crate) fn v3_index(shared: &CatalogState, snapshot: &Snapshot, request: &Request<'_>) -> Reply {
    let json = snapshot.v3_index.get_or_init(|| index(shared, snapshot)).clone();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, value("application/json"));
    serving::plain(json, headers, request)
}

fn index(shared: &CatalogState, snapshot: &Snapshot) -> Bytes {
    let mut paths = BTreeMap::new();
    let mut add = |key: String, tag: &str| {
        let url = address(&key, tag);
        paths.insert(key, IndexEntry { url });
    };
    for served in snapshot.all_served().filter(|s| !s.openapi_v3.is_empty()) {
        add(document_key(served), &document_tag(&served.openapi_v3));
    }
    for (key, document) in general::documents(&snapshot.builtin_groups(), &shared.settings.version) {
        add(key, &document.tag);
    }
    serde_json::to_vec(&Index { paths }).unwrap_or_default().into()
}

fn address(key: &str, tag: &str) -> String {
    format!("/openapi/v3/{key}?hash={tag}")
}

fn document_key(served: &ServedVersion) -> String {
    let root = GroupVersion::new(&served.group, &served.version).root();
    root.trim_start_matches('/').to_owned()
}

fn parse_key(key: &str) -> Option<GroupVersion> {
    match key.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => Some(GroupVersion::new("", *version)),
        ["apis", group, version] if !group.is_empty() => Some(GroupVersion::new(*group, *version)),
        _ => None,
    }
}

/// Returns the tag of a document by content hash, without quotes.
fn document_tag(hash: &str) -> String {
    digits(hash).to_ascii_uppercase()
}

/// Serves `/openapi/v3/<key>`: a document; 404, 406 and 301 have no body.
pub(crate) async fn v3(
    shared: &CatalogState,
    snapshot: &Snapshot,
    key: &str,
    request: &Request<'_>,
) -> Reply {
    let served =
        parse_key(key).and_then(|gv| snapshot.served_version(&gv)).filter(|s| !s.openapi_v3.is_empty());
    let (tag, body) = match served {
        Some(served) => (document_tag(&served.openapi_v3), None),
        None => match general::document(key, &snapshot.builtin_groups(), &shared.settings.version) {
            Some(document) => (document.tag, Some(document.json)),
            None => return Reply::empty(StatusCode::NOT_FOUND, HeaderMap::new()),
        },
    };
    let Some(form) = form::V3.negotiate(&request.accept()) else {
        return Reply::empty(StatusCode::NOT_ACCEPTABLE, HeaderMap::new());
    };
    let hash = request.query_value("hash");
    let mut headers = HeaderMap::new();
    // The document of a backend is served with any hash, which the backend itself would compare.
    let is_foreign = served.is_some_and(|served| served.source == Source::Aggregator);
    if !hash.is_empty() && hash != tag && !is_foreign {
        // The headers of the document's response, without the document.
        headers.insert(header::LOCATION, value(&address(key, &tag)));
        headers.insert(header::CONTENT_TYPE, value(form::V3.media_type(form)));
        headers.insert(header::ETAG, value(&format!("\"{tag}\"")));
        headers.insert(header::VARY, value("Accept"));
        return Reply::empty(StatusCode::MOVED_PERMANENTLY, headers);
    }
    if hash == tag {
        headers.insert(header::CACHE_CONTROL, value("public, immutable"));
        headers.insert(header::EXPIRES, value(&serving::in_a_year()));
    }
    headers.insert(header::CONTENT_TYPE, value(form::V3.media_type(form)));
    let body = match (body, served) {
        (Some(json), _) => Body::Json(json, form),
        (None, Some(served)) => Body::Source(&served.openapi_v3, form),
        (None, None) => return Reply::empty(StatusCode::NOT_FOUND, HeaderMap::new()),
    };
    serving::conditional(shared, body, &format!("\"{tag}\""), headers, request).await
}

/// Serves `/openapi/v2`: the merged document, with one tag for both forms; 406 has no body.
pub(crate) async fn v2(shared: &CatalogState, snapshot: &Snapshot, request: &Request<'_>) -> Reply {
    let Some(form) = form::V2.negotiate(&request.accept()) else {
        return Reply::empty(StatusCode::NOT_ACCEPTABLE, HeaderMap::new());
    };
    let merged = match v2::document(shared, snapshot).await {
        Ok(merged) => merged,
        Err(status) => return Reply::Refused(status),
    };
    let packed = match form {
        Form::Json => Ok(merged.gzip.clone()),
        Form::Protobuf => merged.protobuf(&shared.workers).await,
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, value(form::V2.media_type(form)));
    match packed {
        Ok(packed) => {
            serving::conditional(shared, Body::Compressed(packed), &merged.etag, headers, request).await
        }
        Err(status) => Reply::Refused(status),
    }
}
