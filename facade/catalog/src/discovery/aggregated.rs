//! The aggregated document (`apidiscovery.k8s.io/v2`), composed of the documents of the versions.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portico_machinery::accept::{Encoding, parse_accept};
use portico_machinery::discovery::{GroupMetadata, ServedVersion, VersionDiscovery};
use portico_machinery::version_order::preferred_first;
use portico_machinery::{GroupVersion, Status};
use serde::Serialize;
use serde_json::value::RawValue;

use super::aggregated_document::AggregatedDocument;
use crate::catalog_state::CatalogState;
use crate::document::{DocumentError, load};
use crate::snapshot::Snapshot;

/// Form of the document that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AggregatedForm {
    pub encoding: Encoding,
    pub pretty: bool,
    /// True if only the APIs of this server are requested (`profile=nopeer`).
    pub own_only: bool,
}

/// Returns the form of the first clause that names the aggregated form in a supported encoding. It takes precedence over other
/// clauses with a higher rank.
pub(super) fn negotiate(accept: &str) -> Option<AggregatedForm> {
    parse_accept(accept).iter().find_map(|clause| {
        let triple = [clause.param("g"), clause.param("v"), clause.param("as")];
        if triple != ["apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"] {
            return None;
        }
        let encoding = Encoding::ALL.into_iter().find(|e| clause.covers(e.media_type()))?;
        let (pretty, own_only) = (clause.param("pretty") == "1", clause.param("profile") == "nopeer");
        Some(AggregatedForm { encoding, pretty, own_only })
    })
}

#[derive(Serialize)]
struct GroupItem {
    metadata: GroupMetadata,
    versions: Vec<Box<RawValue>>,
}

/// Groups with the entries of their versions, in document order.
type Groups = Vec<(String, Vec<Arc<ServedVersion>>)>;
/// Documents, each of which can be missing.
type Documents = Vec<Option<Result<Bytes, DocumentError>>>;

/// Interval at which the missing parts of an incomplete document are fetched again.
const PARTIAL_DOCUMENT_TTL: Duration = Duration::from_millis(500);

/// Returns the document of all groups except core.
pub(super) async fn groups(
    shared: &CatalogState,
    snapshot: &Snapshot,
) -> Result<Arc<AggregatedDocument>, Box<Status>> {
    let build = async { document(shared, ordered_groups(snapshot)).await };
    snapshot.aggregated.get_or_build(PARTIAL_DOCUMENT_TTL, build).await
}

/// Returns the document of the core group.
pub(super) async fn core(
    shared: &CatalogState,
    snapshot: &Snapshot,
) -> Result<Arc<AggregatedDocument>, Box<Status>> {
    let build = async {
        let mut versions: Vec<_> = snapshot.all_served().filter(|s| s.group.is_empty()).cloned().collect();
        versions.sort_by(|a, b| preferred_first(&a.version, &b.version));
        document(shared, vec![(String::new(), versions)]).await
    };
    snapshot.aggregated_core.get_or_build(PARTIAL_DOCUMENT_TTL, build).await
}

/// Fetches the parts of a document and builds it. The flag is false if a part is missing.
async fn document(
    shared: &CatalogState,
    groups: Groups,
) -> Result<(Arc<AggregatedDocument>, bool), Box<Status>> {
    let flat = groups.iter().flat_map(|(_, versions)| versions);
    let hashes: Vec<Arc<str>> = flat.map(|s| s.discovery.as_str().into()).collect();
    let documents = load(&*shared.documents, &hashes).await;
    for error in documents.iter().flatten().filter_map(|document| document.as_ref().err()) {
        tracing::warn!(%error, "cannot load a discovery document");
    }
    let complete = documents.iter().flatten().all(Result::is_ok);
    let bytes = documents.iter().flatten().flatten().map(Bytes::len).sum();
    let build = move || Arc::new(AggregatedDocument::encode(items(groups, documents)));
    Ok((shared.workers.compute(bytes, build).await?, complete))
}

/// Orders groups by their highest priority, then name; versions by priority, then in version order.
fn ordered_groups(snapshot: &Snapshot) -> Groups {
    let gv = |s: &ServedVersion| GroupVersion::new(&s.group, &s.version);
    let mut groups: BTreeMap<&str, (i32, Vec<&Arc<ServedVersion>>)> = BTreeMap::new();
    for served in snapshot.all_served().filter(|s| !s.group.is_empty()) {
        let group = groups.entry(&served.group).or_insert((i32::MIN, Vec::new()));
        group.0 = group.0.max(snapshot.priority(&gv(served)).0);
        group.1.push(served);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (priority, _))| Reverse(*priority));
    for (_, (_, versions)) in &mut groups {
        versions.sort_by(|a, b| {
            let priority = |s: &ServedVersion| snapshot.priority(&gv(s)).1;
            priority(b).cmp(&priority(a)).then_with(|| preferred_first(&a.version, &b.version))
        });
    }
    let owned = |versions: Vec<&Arc<ServedVersion>>| versions.into_iter().cloned().collect();
    groups.into_iter().map(|(name, (_, versions))| (name.to_owned(), owned(versions))).collect()
}

fn items(groups: Groups, documents: Documents) -> Vec<GroupItem> {
    let mut documents = documents.into_iter();
    let mut entry = |served: &Arc<ServedVersion>| {
        let document = documents.next().flatten().and_then(Result::ok);
        version_entry(served, document.as_deref())
    };
    let item = |(name, versions): (String, Vec<Arc<ServedVersion>>)| GroupItem {
        metadata: GroupMetadata { name },
        versions: versions.iter().map(&mut entry).collect(),
    };
    groups.into_iter().map(item).collect()
}

/// Returns the entry of a version: its document unchanged, or marked stale, or stale and empty.
fn version_entry(served: &ServedVersion, document: Option<&[u8]>) -> Box<RawValue> {
    let current = document.filter(|_| !served.stale);
    if let Some(Ok(raw)) = current.map(serde_json::from_slice::<Box<RawValue>>) {
        return raw;
    }
    let last_known = document.and_then(|d| serde_json::from_slice::<VersionDiscovery>(d).ok());
    let stale = VersionDiscovery {
        version: served.version.clone(),
        freshness: "Stale".to_owned(),
        ..last_known.unwrap_or_default()
    };
    serde_json::value::to_raw_value(&stale).unwrap_or_default()
}
