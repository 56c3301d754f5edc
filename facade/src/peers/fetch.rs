//! Fetches the aggregated discovery document of a peer, without the APIs of the peer's own peers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use portico_machinery::discovery::{GroupDiscovery, GroupDiscoveryList};
use portico_machinery::peer_addresses::PeerAddress;
use portico_machinery::resolve::Bundle;
use portico_machinery::route::{Availability, Backend, Route, ServiceReference, Target, Trust};
use portico_machinery::{RequestInfo, UserInfo};
use portico_proxy::{BoxError, Identity, Proxy, ProxyContext, RequestBody, RouteEntry};
use tokio::time::Instant;

use super::mark_forwarded;

/// Upstream's `AcceptV2NoPeer`, and `AcceptV2` for servers that do not support that profile.
const ACCEPT_VALUE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,\
                     application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Paths of the documents, core first.
const PATHS: [&str; 2] = ["/api", "/apis"];
/// Name in the certificates of all servers behind one address.
const SERVER_NAME: &str = "kubernetes.default.svc";
/// Size of a peer's discovery document.
///
/// Limit (Facades and control services, bytes): the fetch is retried.
const MAX_BYTES: usize = 64 << 20;
/// Time to fetch a peer's discovery document.
///
/// Limit (Facades and control services): the fetch is retried.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Upstream's `user.APIServerUser`.
const USER: &str = "system:apiserver";

/// Error of a fetch.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("{path} returned {code}")]
    Code { path: &'static str, code: StatusCode },
    #[error("cannot read the response of {path}: {source}")]
    Body { path: &'static str, source: BoxError },
    #[error("the response of {path} is not an aggregated discovery document: {source}")]
    Document { path: &'static str, source: serde_json::Error },
}

/// Creates the upstream of a peer, whose certificate must be signed by these CAs.
pub(super) fn upstream(peer: &PeerAddress, authority: &Bundle) -> Arc<RouteEntry> {
    let backend = Backend {
        service: ServiceReference {
            namespace: "default".to_owned(),
            name: "kubernetes".to_owned(),
            port: peer.address.port(),
        },
        targets: vec![Target { host: peer.address.ip().to_string(), port: peer.address.port() }],
        server_name: SERVER_NAME.to_owned(),
        trust: Trust::Bundle(authority.hash.to_string()),
        ..Backend::default()
    };
    let route = Route {
        name: peer.name.clone(),
        backend: Some(Arc::new(backend)),
        available: Availability { ok: true, ..Availability::default() },
        ..Route::default()
    };
    let pem = Bytes::copy_from_slice(&authority.pem);
    Arc::new(RouteEntry::new(Arc::new(route), &|_| Some(pem.clone())))
}

/// Fetches all groups that the peer serves, including core.
///
/// # Errors
/// [`FetchError`]
pub(super) async fn fetch_groups(
    proxy: &Proxy,
    peer: &RouteEntry,
) -> Result<Vec<GroupDiscovery>, FetchError> {
    let mut all = Vec::new();
    for path in PATHS {
        all.extend(fetch_document(proxy, peer, path).await?);
    }
    Ok(all)
}

async fn fetch_document(
    proxy: &Proxy,
    peer: &RouteEntry,
    path: &'static str,
) -> Result<Vec<GroupDiscovery>, FetchError> {
    let user = UserInfo {
        name: USER.to_owned(),
        uid: USER.to_owned(),
        groups: vec!["system:authenticated".to_owned()],
        ..UserInfo::default()
    };
    let info = RequestInfo { path: path.to_owned(), verb: "get".to_owned(), ..RequestInfo::default() };
    let context = ProxyContext {
        identity: Some(&Identity::new(&user)),
        audit_id: &HeaderValue::from_static(""),
        client: None,
        request_info: &info,
        deadline: Some(Instant::now() + TIMEOUT),
        trace: None,
    };
    let mut request = Request::new(RequestBody::empty());
    *request.uri_mut() = http::Uri::from_static(path);
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(ACCEPT_VALUE));
    mark_forwarded(request.headers_mut());
    let response = proxy.handle(peer, request, context).await;
    if response.status() != StatusCode::OK {
        return Err(FetchError::Code { path, code: response.status() });
    }
    let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
    let body = body.map_err(|source| FetchError::Body { path, source })?.to_bytes();
    let groups: GroupDiscoveryList =
        serde_json::from_slice(&body).map_err(|source| FetchError::Document { path, source })?;
    Ok(groups.items)
}
