//! The aggregated document (`apidiscovery.k8s.io/v2`): put together of the versions' own documents.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::accept::{Encoding, parse_accept};
use portico_machinery::discovery::{GroupMetadata, Served, VersionDiscovery};
use portico_machinery::version_order::preferred_first;
use serde::Serialize;
use serde_json::value::RawValue;

use super::aggregated_document::Aggregated;
use crate::document::load;
use crate::shared::Shared;
use crate::snapshot::Snapshot;

/// The form a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub encoding: Encoding,
    pub pretty: bool,
    /// Of this server alone (`profile=nopeer`).
    pub own: bool,
}

/// The first clause that names the aggregated form in something that we write; it wins over plain clauses that rank
/// higher.
pub(super) fn wanted(accept: &str) -> Option<Wanted> {
    parse_accept(accept).iter().find_map(|clause| {
        let triple = [clause.param("g"), clause.param("v"), clause.param("as")];
        if triple != ["apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"] {
            return None;
        }
        let encoding = Encoding::ALL.into_iter().find(|e| clause.covers(e.media_type()))?;
        let (pretty, own) = (clause.param("pretty") == "1", clause.param("profile") == "nopeer");
        Some(Wanted { encoding, pretty, own })
    })
}

#[derive(Serialize)]
struct Item {
    metadata: GroupMetadata,
    versions: Vec<Box<RawValue>>,
}

/// All groups but core.
pub(super) async fn groups(shared: &Shared, snapshot: &Snapshot) -> Arc<Aggregated> {
    let make = || async {
        let (items, complete) = items(shared, &ordered(snapshot)).await;
        finish(items, complete)
    };
    snapshot.aggregated.get_or_try_init(make).await.map_or_else(|partial| partial, Clone::clone)
}

/// The core group's own document.
pub(super) async fn core(shared: &Shared, snapshot: &Snapshot) -> Arc<Aggregated> {
    let make = || async {
        let mut versions: Vec<_> = snapshot.all_served().filter(|s| s.group.is_empty()).collect();
        versions.sort_by(|a, b| preferred_first(&a.version, &b.version));
        let (items, complete) = items(shared, &[("", versions)]).await;
        finish(items, complete)
    };
    snapshot.aggregated_core.get_or_try_init(make).await.map_or_else(|partial| partial, Clone::clone)
}

/// Groups by their highest priority, then name; versions by priority, then as versions sort.
fn ordered(snapshot: &Snapshot) -> Vec<(&str, Vec<&Arc<Served>>)> {
    let gv = |s: &Served| GroupVersion::new(&s.group, &s.version);
    let mut groups: BTreeMap<&str, (i32, Vec<&Arc<Served>>)> = BTreeMap::new();
    for served in snapshot.all_served().filter(|s| !s.group.is_empty()) {
        let group = groups.entry(&served.group).or_insert((i32::MIN, Vec::new()));
        group.0 = group.0.max(snapshot.priority(&gv(served)).0);
        group.1.push(served);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (priority, _))| Reverse(*priority));
    for (_, (_, versions)) in &mut groups {
        versions.sort_by(|a, b| {
            let priority = |s: &Served| snapshot.priority(&gv(s)).1;
            priority(b).cmp(&priority(a)).then_with(|| preferred_first(&a.version, &b.version))
        });
    }
    groups.into_iter().map(|(name, (_, versions))| (name, versions)).collect()
}

/// The items, and whether every document could be had.
async fn items(shared: &Shared, groups: &[(&str, Vec<&Arc<Served>>)]) -> (Vec<Item>, bool) {
    let flat = groups.iter().flat_map(|(_, versions)| versions);
    let hashes: Vec<Arc<str>> = flat.map(|s| s.discovery.as_str().into()).collect();
    let mut documents = load(&*shared.documents, &hashes).await.into_iter();
    let mut complete = true;
    let mut items = Vec::with_capacity(groups.len());
    for (name, versions) in groups {
        let one = |served: &&Arc<Served>| {
            let document = match documents.next().flatten() {
                Some(Ok(bytes)) => Some(bytes),
                Some(Err(error)) => {
                    tracing::warn!(%error, "a discovery document is missing");
                    complete = false;
                    None
                }
                None => None,
            };
            version(served, document.as_deref())
        };
        let versions = versions.iter().map(one).collect();
        items.push(Item { metadata: GroupMetadata { name: (*name).to_owned() }, versions });
    }
    (items, complete)
}

/// A version's entry: its document as it is, or marked stale, or stale and empty.
fn version(served: &Served, document: Option<&[u8]>) -> Box<RawValue> {
    let current = document.filter(|_| !served.stale);
    if let Some(Ok(raw)) = current.map(serde_json::from_slice::<Box<RawValue>>) {
        return raw;
    }
    let known = document.and_then(|d| serde_json::from_slice::<VersionDiscovery>(d).ok());
    let stale = VersionDiscovery {
        version: served.version.clone(),
        freshness: "Stale".to_owned(),
        ..known.unwrap_or_default()
    };
    serde_json::value::to_raw_value(&stale).unwrap_or_default()
}

fn finish(items: Vec<Item>, complete: bool) -> Result<Arc<Aggregated>, Arc<Aggregated>> {
    let document = Arc::new(Aggregated::of(items));
    // One that lacks something is answered once and made anew for the next request.
    if complete { Ok(document) } else { Err(document) }
}
