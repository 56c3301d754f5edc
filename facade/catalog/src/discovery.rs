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

pub(crate) use aggregated_document::AggregatedDocument;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use portico_machinery::accept::{Encoding, Offer, negotiate, route_accepts};
use portico_machinery::discovery::Source;
use portico_machinery::{GroupVersion, Status};

use crate::catalog_state::CatalogState;
use crate::document::load_one;
use crate::request::{Document, Reply, Request, value};
use crate::served_apis::ServedApis;
use crate::snapshot::Snapshot;
pub use addresses::AddressRule;
use aggregated::AggregatedForm;
pub(crate) use peers::PeerDocuments;
pub use peers::PeerGroups;

const OFFER: Offer<'_> = Offer { encodings: &Encoding::ALL, forms: &[], object_as_protobuf: true };
/// Media types in the message of a 406.
const ACCEPTED: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// Serves `/api` and `/api/`: aggregated or `APIVersions`.
pub(crate) async fn core(shared: &CatalogState, apis: &ServedApis, request: &Request<'_>) -> Reply {
    if let Some(refusal) = refuse_other_method(request) {
        return refusal;
    }
    if let Some(form) = aggregated::negotiate(&request.accept()) {
        let document = aggregated::core(shared, apis.snapshot()).await;
        return aggregated_reply(shared, document, form, request).await;
    }
    negotiate_strictly(shared, request, || {
        let client = addresses::client_ip(request.headers, request.client);
        let rule = apis.address_rule();
        let rule = rule.filter(|rule| client.is_some_and(|ip| rule.clients.contains(&ip)));
        legacy::versions(&shared.server_address(), rule)
    })
    .await
}

/// Serves `/apis`: aggregated or the list of groups; all methods.
pub(crate) async fn groups(shared: &CatalogState, snapshot: &Snapshot, request: &Request<'_>) -> Reply {
    match aggregated::negotiate(&request.accept()) {
        Some(form) => {
            let document = match aggregated::groups(shared, snapshot).await {
                Ok(own) if !form.own_only => shared.peers.merged_with(&shared.workers, own).await,
                own => own,
            };
            aggregated_reply(shared, document, form, request).await
        }
        None => legacy_groups(shared, snapshot, request).await,
    }
}

/// Serves `/apis/`, which has no aggregated form; all methods.
pub(crate) async fn legacy_groups(
    shared: &CatalogState,
    snapshot: &Snapshot,
    request: &Request<'_>,
) -> Reply {
    let json = || snapshot.legacy.get_or_init(|| legacy::group_list(snapshot.groups())).clone();
    negotiate_reply(shared, request, json).await
}

/// Serves `/apis/<group>`; all methods. `None` if no APIService has this group.
pub(crate) async fn group(
    shared: &CatalogState,
    snapshot: &Snapshot,
    name: &str,
    request: &Request<'_>,
) -> Option<Reply> {
    let group = snapshot.group(name)?;
    Some(negotiate_reply(shared, request, || legacy::group(group)).await)
}

/// Serves the resource list of a group version; `None` if it is not served, or served by a backend.
pub(crate) async fn resources(
    shared: &CatalogState,
    snapshot: &Snapshot,
    gv: &GroupVersion,
    request: &Request<'_>,
) -> Option<Reply> {
    let served =
        snapshot.served_version(gv).filter(|s| !s.resource_list.is_empty() && !snapshot.is_remote(gv))?;
    // Upstream routes built-in group versions like resources, and those of definitions outside of the route table.
    let is_routed = served.source != Source::Crd;
    if let Some(refusal) = refuse_other_method(request).filter(|_| is_routed) {
        return Some(refusal);
    }
    let hash = served.resource_list.as_str();
    let loaded = load_one(&*shared.documents, hash).await?;
    Some(match loaded {
        Ok(json) if is_routed => negotiate_strictly(shared, request, || json::with_newline(&json)).await,
        Ok(json) => negotiate_reply(shared, request, || json::with_newline(&json)).await,
        Err(error) => Reply::refused(Status::unavailable(error.to_string())),
    })
}

/// Refuses methods other than GET with 405, as upstream does for paths that are routed like resources.
fn refuse_other_method(request: &Request<'_>) -> Option<Reply> {
    (request.method != Method::GET).then(|| Reply::refused(Status::method_not_allowed()))
}

/// Negotiates as upstream does for paths that are routed like resources: `application/*` is not accepted.
async fn negotiate_strictly(
    shared: &CatalogState,
    request: &Request<'_>,
    json: impl FnOnce() -> Bytes,
) -> Reply {
    let accept = request.accept();
    if !accept.is_empty() && !route_accepts(&accept, &ACCEPTED) {
        return Reply::refused(Status::no_acceptable_representation(&ACCEPTED));
    }
    negotiate_reply(shared, request, json).await
}

async fn negotiate_reply(
    shared: &CatalogState,
    request: &Request<'_>,
    json: impl FnOnce() -> Bytes,
) -> Reply {
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
    shared: &CatalogState,
    document: Result<Arc<AggregatedDocument>, Box<Status>>,
    form: AggregatedForm,
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
    let media = format!("{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", form.encoding.media_type());
    headers.insert(header::CONTENT_TYPE, value(&media));
    let AggregatedForm { encoding, pretty, .. } = form;
    match document.body(&shared.workers, encoding).await {
        Ok(body) => Reply::Document(Document { body, encoding, pretty, headers }),
        Err(status) => Reply::Refused(status),
    }
}
