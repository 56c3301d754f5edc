//! The merged version 2 document: built for the first request, part by part, and kept compressed.

mod merge;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portico_machinery::discovery::{ServedVersion, Source};
use portico_machinery::openapi::{RawMembers, SpecV2};
use portico_machinery::{GroupVersion, Status};
use serde::Serialize;

use super::general;
use super::merged_document::MergedDocument;
use crate::catalog_state::CatalogState;
use crate::document::{DocumentError, load};
use crate::snapshot::Snapshot;
use merge::Merger;

/// Number of parts that are in memory at the same time, in addition to the merged document.
const BATCH_SIZE: usize = 8;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    swagger: &'static str,
    info: general::Info<'a>,
    paths: &'a RawMembers,
    definitions: &'a RawMembers,
    parameters: &'a RawMembers,
    security_definitions: indexmap::IndexMap<&'static str, general::SecurityScheme>,
    security: [indexmap::IndexMap<&'static str, [&'static str; 0]>; 1],
}

/// Time for which a document with missing parts is used before the merge is repeated, which costs as much as the first one.
const PARTIAL_DOCUMENT_TTL: Duration = Duration::from_secs(10);

/// Returns all served APIs, merged. Unavailable parts are omitted, and fetched again later.
pub(super) async fn document(
    shared: &CatalogState,
    snapshot: &Snapshot,
) -> Result<Arc<MergedDocument>, Box<Status>> {
    let build = async {
        let (merger, complete) = merge_parts(shared, snapshot).await?;
        let version = shared.settings.version.clone();
        let finish = move || Arc::new(finish(&merger.finish(), &version));
        Ok((shared.workers.compute(usize::MAX, finish).await?, complete))
    };
    snapshot.v2.get_or_build(PARTIAL_DOCUMENT_TTL, build).await
}

/// Merges all parts. The flag is true if none is missing. Documents are fetched here and merged on the threads for long work.
async fn merge_parts(shared: &CatalogState, snapshot: &Snapshot) -> Result<(Merger, bool), Box<Status>> {
    let mut merger = Merger::default();
    merger.add(general::part_v2(&snapshot.builtin_groups()));
    let mut complete = true;
    for batch in parts(snapshot).chunks(BATCH_SIZE) {
        let hashes: Vec<Arc<str>> = batch.iter().map(|s| s.openapi_v2.as_str().into()).collect();
        let loaded = load(&*shared.documents, &hashes).await;
        let bytes = loaded.iter().flatten().flatten().map(Bytes::len).sum();
        let batch: Vec<Arc<ServedVersion>> = batch.iter().map(|served| Arc::clone(served)).collect();
        let add = move || {
            let mut complete = true;
            for (served, loaded) in batch.iter().zip(loaded) {
                let Some(loaded) = loaded else { continue };
                complete &= add_part(&mut merger, served, loaded);
            }
            (merger, complete)
        };
        let added = shared.workers.compute(bytes, add).await?;
        merger = added.0;
        complete &= added.1;
    }
    Ok((merger, complete))
}

/// Merges one part. Returns false if it is unavailable.
fn add_part(merger: &mut Merger, served: &ServedVersion, loaded: Result<Bytes, DocumentError>) -> bool {
    let part = loaded.map_err(|error| error.to_string());
    match part.and_then(|json| SpecV2::parse(&json).map_err(|error| error.to_string())) {
        Ok(part) => {
            merger.add(part);
            true
        }
        Err(error) => {
            tracing::warn!(
                group = served.group,
                version = served.version,
                error,
                "cannot load an OpenAPI v2 document"
            );
            false
        }
    }
}

/// Entries with a part, in upstream's order: local ones, then backends by group priority, group and APIService name.
fn parts(snapshot: &Snapshot) -> Vec<&Arc<ServedVersion>> {
    let gv = |s: &ServedVersion| GroupVersion::new(&s.group, &s.version);
    let mut priorities: HashMap<&str, i32> = HashMap::new();
    for served in snapshot.all_served().filter(|s| s.source == Source::Aggregator) {
        let priority = priorities.entry(&served.group).or_insert(i32::MIN);
        *priority = (*priority).max(snapshot.priority(&gv(served)).0);
    }
    let mut parts: Vec<_> = snapshot.all_served().filter(|s| !s.openapi_v2.is_empty()).collect();
    parts.sort_by_cached_key(|s| {
        let local = match s.source {
            Source::Builtin => 0,
            Source::Crd => 1,
            Source::Aggregator => 2,
        };
        let priority = priorities.get(s.group.as_str()).filter(|_| local == 2).copied().unwrap_or(0);
        (local, Reverse(priority), s.group.clone(), gv(s).api_service_name())
    });
    parts
}

fn finish(spec: &SpecV2, version: &str) -> MergedDocument {
    let document = Document {
        swagger: "2.0",
        info: general::Info { title: "Kubernetes", version },
        paths: &spec.paths,
        definitions: &spec.definitions,
        parameters: &spec.parameters,
        security_definitions: general::security(),
        security: [indexmap::IndexMap::from([("BearerToken", [])])],
    };
    // Serialization of maps with string keys does not fail.
    let json = serde_json::to_vec(&document).unwrap_or_default();
    MergedDocument::new(&json)
}
