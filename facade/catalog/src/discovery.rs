//! Discovery: negotiation of the form of a document, and the responses.
//!
//! Mirrors upstream's `discovery/aggregated` package and `apisHandler`, and additional behavior that a real server showed.

mod addresses;
mod aggregated;
mod aggregated_document;
mod json;
mod legacy;
mod peers;
mod protobuf;

pub(crate) use aggregated_document::Aggregated;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use portico_machinery::accept::{Encoding, Offer, negotiate, route_takes};
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
/// Media types in the message of a 406.
const ACCEPTED: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// Serves `/api` and `/api/`: aggregated or `APIVersions`.
pub(crate) async fn core(shared: &Shared, apis: &ServedApis, request: &Request<'_>) -> Reply {
    if let Some(refusal) = other_method(request) {
        return refusal;
    }
    if let Some(wanted) = aggregated::wanted(&request.accept()) {
        let document = aggregated::core(shared, apis.snapshot()).await;
        return aggregated_reply(shared, document, wanted, request).await;
    }
    strict(shared, request, || {
        let client = addresses::client_ip(request.headers, request.client);
        let rule = apis.address_rule();
        let rule = rule.filter(|rule| client.is_some_and(|ip| rule.clients.contains(&ip)));
        legacy::versions(&shared.server_address(), rule)
    })
    .await
}

/// Serves `/apis`: aggregated or the list of groups; all methods.
pub(crate) async fn groups(shared: &Shared, snapshot: &Snapshot, request: &Request<'_>) -> Reply {
    match aggregated::wanted(&request.accept()) {
        Some(wanted) => {
            let document = match aggregated::groups(shared, snapshot).await {
                Ok(own) if !wanted.own => shared.peers.merged_with(&shared.workers, own).await,
                own => own,
            };
            aggregated_reply(shared, document, wanted, request).await
        }
        None => legacy_groups(shared, snapshot, request).await,
    }
}

/// Serves `/apis/`, which has no aggregated form; all methods.
pub(crate) async fn legacy_groups(shared: &Shared, snapshot: &Snapshot, request: &Request<'_>) -> Reply {
    let json = || snapshot.legacy.get_or_init(|| legacy::group_list(snapshot.groups())).clone();
    negotiated(shared, request, json).await
}

/// Serves `/apis/<group>`; all methods. `None` if no APIService has this group.
pub(crate) async fn group(
    shared: &Shared,
    snapshot: &Snapshot,
    name: &str,
    request: &Request<'_>,
) -> Option<Reply> {
    let group = snapshot.group(name)?;
    Some(negotiated(shared, request, || legacy::group(group)).await)
}

/// Serves the resource list of a group version; `None` if it is not served, or served by a backend.
pub(crate) async fn resources(
    shared: &Shared,
    snapshot: &Snapshot,
    gv: &GroupVersion,
    request: &Request<'_>,
) -> Option<Reply> {
    let served = snapshot.served(gv).filter(|s| !s.resource_list.is_empty() && !snapshot.is_remote(gv))?;
    // Upstream routes built-in group versions like resources, and those of definitions outside of the route table.
    let routed = served.source != Source::Crd;
    if let Some(refusal) = other_method(request).filter(|_| routed) {
        return Some(refusal);
    }
    let hash = served.resource_list.as_str();
    let loaded = load_one(&*shared.documents, hash).await?;
    Some(match loaded {
        Ok(json) if routed => strict(shared, request, || json::with_newline(&json)).await,
        Ok(json) => negotiated(shared, request, || json::with_newline(&json)).await,
        Err(error) => Reply::refused(Status::unavailable(error.to_string())),
    })
}

/// Refuses methods other than GET with 405, as upstream does for paths that are routed like resources.
fn other_method(request: &Request<'_>) -> Option<Reply> {
    (request.method != Method::GET).then(|| Reply::refused(Status::no_method()))
}

/// Negotiates as upstream does for paths that are routed like resources: `application/*` is not accepted.
async fn strict(shared: &Shared, request: &Request<'_>, json: impl FnOnce() -> Bytes) -> Reply {
    let accept = request.accept();
    if !accept.is_empty() && !route_takes(&accept, &ACCEPTED) {
        return Reply::refused(Status::no_representation(&ACCEPTED));
    }
    negotiated(shared, request, json).await
}

async fn negotiated(shared: &Shared, request: &Request<'_>, json: impl FnOnce() -> Bytes) -> Reply {
    let Some(choice) = negotiate(&request.accept(), OFFER) else {
        return Reply::refused(Status::not_acceptable(&ACCEPTED));
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, value(choice.encoding.media_type()));
    let json = json();
    let body = match choice.encoding {
        Encoding::Protobuf => shared.workers.compute(json.len(), move || protobuf::encode(&json)).await,
        Encoding::Json | Encoding::Yaml => Ok(json),
    };
    match body {
        Ok(body) => {
            Reply::Document(Document { body, encoding: choice.encoding, pretty: choice.pretty, headers })
        }
        Err(status) => Reply::Refused(status),
    }
}

/// Returns the aggregated document with its validators; 304 only for exactly the current tag.
async fn aggregated_reply(
    shared: &Shared,
    document: Result<Arc<Aggregated>, Box<Status>>,
    wanted: Wanted,
    request: &Request<'_>,
) -> Reply {
    let document = match document {
        Ok(document) => document,
        Err(status) => return Reply::Refused(status),
    };
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
    let Wanted { encoding, pretty, .. } = wanted;
    match document.body(&shared.workers, encoding).await {
        Ok(body) => Reply::Document(Document { body, encoding, pretty, headers }),
        Err(status) => Reply::Refused(status),
    }
}
