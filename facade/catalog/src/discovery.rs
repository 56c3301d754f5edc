//! Discovery: which form of a document a request gets, and the answers themselves.
//!
//! As upstream's `discovery/aggregated` package and `apisHandler`, and what a real server showed beyond them.

mod addresses;
mod aggregated;
mod aggregated_document;
mod json;
mod legacy;
mod peers;
mod protobuf;

pub(crate) use aggregated_document::Aggregated;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use portico_machinery::accept::{Choice, Encoding, Offer, negotiate};
use portico_machinery::discovery::Source;
use portico_machinery::{GroupVersion, Status};

use crate::document::load_one;
use crate::request::{Document, Reply, Request, value};
use crate::served_apis::ServedApis;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
pub use addresses::AddressRule;
use aggregated::Wanted;
pub use peers::PeerGroups;
pub(crate) use peers::Peers;

const OFFER: Offer<'_> = Offer { encodings: &Encoding::ALL, forms: &[], sealed: true };
/// What a 406 names.
const ACCEPTED: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// `/api` and `/api/`: aggregated or `APIVersions`.
pub(crate) async fn core(shared: &Shared, apis: &ServedApis, request: &Request<'_>) -> Reply {
    if let Some(refusal) = other_method(request) {
        return refusal;
    }
    if let Some(wanted) = aggregated::wanted(&request.accept()) {
        let document = aggregated::core(shared, apis.snapshot()).await;
        return aggregated_reply(&document, wanted, request);
    }
    strict(request, || {
        let client = addresses::client_ip(request.headers, request.client);
        let rule = apis.address_rule();
        let rule = rule.filter(|rule| client.is_some_and(|ip| rule.clients.contains(&ip)));
        legacy::versions(&shared.server_address(), rule)
    })
}

/// `/apis`: aggregated or the list of groups; any method.
pub(crate) async fn groups(shared: &Shared, snapshot: &Snapshot, request: &Request<'_>) -> Reply {
    match aggregated::wanted(&request.accept()) {
        Some(wanted) => {
            let own = aggregated::groups(shared, snapshot).await;
            let document = if wanted.own { own } else { shared.peers.merged_with(own) };
            aggregated_reply(&document, wanted, request)
        }
        None => legacy_groups(snapshot, request),
    }
}

/// `/apis/`, which never gives the aggregated form; any method.
pub(crate) fn legacy_groups(snapshot: &Snapshot, request: &Request<'_>) -> Reply {
    let json = || snapshot.legacy.get_or_init(|| legacy::group_list(snapshot.groups())).clone();
    negotiated(request, json)
}

/// `/apis/<group>`; any method. Nothing when no APIService is of this group.
pub(crate) fn group(snapshot: &Snapshot, name: &str, request: &Request<'_>) -> Option<Reply> {
    let group = snapshot.group(name)?;
    Some(negotiated(request, || legacy::group(group)))
}

/// The resource list of a group version that is served here; nothing when a backend or nobody serves it.
pub(crate) async fn resources(
    shared: &Shared,
    snapshot: &Snapshot,
    gv: &GroupVersion,
    request: &Request<'_>,
) -> Option<Reply> {
    let served = snapshot.served(gv).filter(|s| !s.resource_list.is_empty() && !snapshot.is_remote(gv))?;
    // Upstream routes those that are built in like resources, and those of definitions by no route table.
    let routed = served.source != Source::Crd;
    if let Some(refusal) = other_method(request).filter(|_| routed) {
        return Some(refusal);
    }
    let hash = served.resource_list.as_str();
    let loaded = load_one(&*shared.documents, hash).await?;
    Some(match loaded {
        Ok(json) if routed => strict(request, || json::with_newline(&json)),
        Ok(json) => negotiated(request, || json::with_newline(&json)),
        Err(error) => Reply::refused(Status::unavailable(error.to_string())),
    })
}

/// Routed like resources upstream: other methods are 405.
fn other_method(request: &Request<'_>) -> Option<Reply> {
    (request.method != Method::GET).then(|| Reply::refused(Status::no_method()))
}

/// Routed like resources upstream: `application/*` is not enough.
fn strict(request: &Request<'_>, json: impl FnOnce() -> Bytes) -> Reply {
    let accept = request.accept();
    let clauses = accept.split(',').map(|c| c.split(';').next().unwrap_or_default().trim());
    if !accept.is_empty() && clauses.clone().all(|c| c == "application/*") {
        return Reply::refused(Status::not_acceptable(&ACCEPTED));
    }
    negotiated(request, json)
}

fn negotiated(request: &Request<'_>, json: impl FnOnce() -> Bytes) -> Reply {
    let Some(choice) = negotiate(&request.accept(), OFFER) else {
        return Reply::refused(Status::not_acceptable(&ACCEPTED));
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, value(choice.encoding.media_type()));
    document(json(), choice, headers)
}

fn document(json: Bytes, choice: Choice, headers: HeaderMap) -> Reply {
    let body = if choice.encoding == Encoding::Protobuf { protobuf::encode(&json) } else { json };
    Reply::Document(Document { body, encoding: choice.encoding, pretty: choice.pretty, headers })
}

/// The aggregated document with its validators; 304 only for exactly the current tag.
fn aggregated_reply(document: &Aggregated, wanted: Wanted, request: &Request<'_>) -> Reply {
    let mut headers = HeaderMap::new();
    headers.insert(header::ETAG, value(&document.etag));
    headers.insert(header::VARY, value("Accept"));
    headers.insert(header::CACHE_CONTROL, value("public"));
    if request.header(header::IF_NONE_MATCH) == document.etag {
        return Reply::empty(StatusCode::NOT_MODIFIED, headers);
    }
    let media =
        format!("{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", wanted.encoding.media_type());
    headers.insert(header::CONTENT_TYPE, value(&media));
    Reply::Document(Document {
        body: document.body(wanted.encoding),
        encoding: wanted.encoding,
        pretty: wanted.pretty,
        headers,
    })
}
