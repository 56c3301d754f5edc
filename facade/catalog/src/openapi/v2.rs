//! The merged version 2 document: made at first ask, part by part, and kept compressed.

mod merge;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use portico_machinery::GroupVersion;
use portico_machinery::discovery::{Served, Source};
use portico_machinery::openapi::{Pieces, SpecV2};
use serde::Serialize;
use tokio::time::Instant;

use super::general;
use super::merged_document::MergedDocument;
use crate::document::load;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use merge::Merger;

/// How many parts are in memory at a time besides the merged document.
const BATCH: usize = 8;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    swagger: &'static str,
    info: general::Info<'a>,
    paths: &'a Pieces,
    definitions: &'a Pieces,
    parameters: &'a Pieces,
    security_definitions: indexmap::IndexMap<&'static str, general::SecurityScheme>,
    security: [indexmap::IndexMap<&'static str, [&'static str; 0]>; 1],
}

/// How long a document with parts missing is given out before they are looked for again: merging costs as much as ever.
const PARTIAL_LIFE: Duration = Duration::from_secs(10);

/// Everything that is served, merged. A part that cannot be had is left out, and looked for again after a while.
pub(super) async fn document(shared: &Shared, snapshot: &Snapshot) -> Arc<MergedDocument> {
    if let Some(document) = snapshot.v2.get() {
        return Arc::clone(document);
    }
    // One request merges; those that come meanwhile take what it made.
    let mut partial = snapshot.v2_partial.lock().await;
    if let Some(document) = snapshot.v2.get() {
        return Arc::clone(document);
    }
    if let Some((made, document)) = &*partial
        && made.elapsed() < PARTIAL_LIFE
    {
        return Arc::clone(document);
    }
    let (spec, complete) = merged(shared, snapshot).await;
    let document = Arc::new(finish(&spec, &shared.settings.version));
    *partial = (!complete).then(|| (Instant::now(), Arc::clone(&document)));
    if complete {
        // Nobody else can have set it: they wait above.
        let _ = snapshot.v2.set(Arc::clone(&document));
    }
    document
}

async fn merged(shared: &Shared, snapshot: &Snapshot) -> (SpecV2, bool) {
    let mut merger = Merger::default();
    merger.add(general::part(&snapshot.builtin_groups()));
    let mut complete = true;
    for batch in parts(snapshot).chunks(BATCH) {
        let hashes: Vec<Arc<str>> = batch.iter().map(|s| s.openapi_v2.as_str().into()).collect();
        for (served, loaded) in batch.iter().zip(load(&*shared.documents, &hashes).await) {
            let part = match loaded {
                Some(Ok(json)) => SpecV2::parse(&json).map_err(|e| e.to_string()),
                Some(Err(error)) => Err(error.to_string()),
                None => continue,
            };
            match part {
                Ok(part) => merger.add(part),
                Err(error) => {
                    tracing::warn!(
                        group = served.group,
                        version = served.version,
                        error,
                        "no OpenAPI v2 part"
                    );
                    complete = false;
                }
            }
            // Merging is work without waiting: others get their turn between parts.
            tokio::task::yield_now().await;
        }
    }
    (merger.finish(), complete)
}

/// Entries with a part, in upstream's order: local first, then backends by group priority, group and APIService name.
fn parts(snapshot: &Snapshot) -> Vec<&Arc<Served>> {
    let gv = |s: &Served| GroupVersion::new(&s.group, &s.version);
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
    // Maps with string keys always encode.
    let json = serde_json::to_vec(&document).unwrap_or_default();
    MergedDocument::new(&json)
}
