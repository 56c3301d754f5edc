//! TestFaults (`--test-faults`): applies the faults that tests have set to authorized requests for resources.
//!
//! The innermost layer: refusals by authorization stay unchanged, and the complete response passes through here.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http_body_util::{BodyExt, Limited};
use portico_kit::header_text;
use portico_kit::layer::{LayerFuture, take_ready};
use portico_machinery::{GroupResource, RequestInfo, Status};
use tower::Service;

use crate::body::Body;
use crate::connection::NoResponse;
use crate::handler::{Handler, HandlerResult};
use crate::request::{Request, RequestView, Response, Target};
use crate::respond;
use crate::route_table;
use crate::test_faults::{
    Claim, EarlierList, Fault, FaultStore, MatchedRequest, WatchBody, object_name, only_item, refusal,
};

/// Size of an object that a test fault serves as of an earlier revision.
///
/// Limit (Serving, bytes): the request fails with 500.
const MAX_OBJECT: usize = 16 << 20;

const JSON: &str = "application/json";
/// List of metadata, whose items have the form that a client of metadata requests.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Service of the layer for test faults.
#[derive(Clone)]
pub struct FaultInjection<S> {
    faults: Arc<FaultStore>,
    inner: S,
}

impl<S> FaultInjection<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, faults: Arc<FaultStore>) -> Self {
        Self { faults, inner }
    }
}

impl<S: Handler> Service<Request> for FaultInjection<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = LayerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let info = request.info();
        // A fault that is set later can apply to an open watch.
        let is_affected = info.is_resource_request && (info.verb == "watch" || !self.faults.is_empty());
        if !is_affected {
            return LayerFuture::from_inner(self.inner.call(request));
        }
        let (faults, inner) = (Arc::clone(&self.faults), take_ready(&mut self.inner));
        LayerFuture::from_boxed(serve(faults, inner, request))
    }
}

async fn serve<S: Handler>(faults: Arc<FaultStore>, mut inner: S, request: Request) -> HandlerResult {
    let (matched_request, can_be_stale) = (MatchedRequest::from_request(&request), is_local(&request));
    let claim = faults.claim(&matched_request, |fault| applies_now(fault, &request, can_be_stale));
    let response = match claim {
        Some(claim) => apply_fault(claim, &mut inner, request).await?,
        None => inner.call(request).await?,
    };
    let is_watch = matched_request.info.verb == "watch" && response.status() == StatusCode::OK;
    if !is_watch {
        return Ok(response);
    }
    let media_type = header_text::first(response.headers(), CONTENT_TYPE).to_owned();
    let watch =
        |body| Body::streamed(WatchBody::new(body, &media_type, matched_request, can_be_stale, faults));
    Ok(response.map(watch))
}

/// True if the control service stores the objects and their history.
fn is_local(request: &Request) -> bool {
    match request.active_config().routes.find(&request.info().path) {
        Some(route_table::Target::Route(upstream)) => upstream.route().is_local(),
        _ => true,
    }
}

/// True if the fault can apply to the request now, rather than to a watch while it is open.
fn applies_now(fault: &Fault, request: &Request, can_be_stale: bool) -> bool {
    match fault {
        Fault::StaleReads { .. } => can_be_stale && earlier_list(fault, request).is_some(),
        other => !other.applies_to_open_watches(),
    }
}

fn earlier_list(fault: &Fault, request: &Request) -> Option<EarlierList> {
    let Fault::StaleReads { resource_version: Some(revision) } = fault else { return None };
    EarlierList::for_request(request.info(), request.query(), revision.parse().ok()?)
}

async fn apply_fault<S: Handler>(mut claim: Claim, inner: &mut S, request: Request) -> HandlerResult {
    claim.mark_applied();
    if let Some(status) = refusal(claim.fault(), request.info()) {
        return Ok(refuse(claim.fault(), status, request).await);
    }
    if let Some(earlier) = earlier_list(claim.fault(), &request) {
        return read_earlier(&earlier, inner, request).await;
    }
    match claim.fault() {
        Fault::Latency { milliseconds } => {
            tokio::time::sleep(Duration::from_millis(*milliseconds)).await;
            inner.call(request).await
        }
        Fault::DropRequest {} => Ok(broken_connection()),
        Fault::DropAnswer {} => inner.call(request).await.map(|_| broken_connection()),
        _ => inner.call(request).await,
    }
}

/// Refuses a request. For a conflict, the message names the object; the name in a create request is in its body.
async fn refuse(fault: &Fault, mut status: Status, request: Request) -> Response {
    let is_named = matches!(status.reason.as_str(), "AlreadyExists" | "Conflict");
    if !is_named || request.info().verb != "create" || !request.info().name.is_empty() {
        return respond::status(&request, &status);
    }
    let (parts, body) = request.into_parts();
    let request_body = Limited::new(body, MAX_OBJECT).collect().await.map(|body| body.to_bytes());
    let info = RequestInfo {
        name: object_name(&request_body.unwrap_or_default()),
        ..RequestInfo::clone(parts.info())
    };
    status = refusal(fault, &info).unwrap_or(status);
    respond::status(&parts, &status)
}

/// Response for the log and the metrics; the client does not receive it.
fn broken_connection() -> Response {
    let mut response = respond::text(StatusCode::INTERNAL_SERVER_ERROR, "a test fault closed the connection");
    response.extensions_mut().insert(NoResponse);
    response
}

/// Serves a read from a list of an earlier revision, or from its only item.
async fn read_earlier<S: Handler>(earlier: &EarlierList, inner: &mut S, request: Request) -> HandlerResult {
    let (original, body) = request.into_parts();
    let mut parts = original.clone();
    if let Err(status) = redirect(&mut parts, earlier) {
        return Ok(respond::status(&original, &status));
    }
    let response = inner.call(Request::from_parts(parts, body)).await?;
    if !earlier.is_get || response.status() != StatusCode::OK {
        return Ok(response);
    }
    let item = Limited::new(response.into_body(), MAX_OBJECT).collect().await.map_err(internal_error);
    let item = item.and_then(|body| only_item(&body.to_bytes()).map_err(internal_error));
    let info = original.info();
    let resource = GroupResource::new(info.api_group.clone(), info.resource.clone());
    Ok(match item {
        Ok(Some(object)) => respond::with_body(StatusCode::OK, JSON, object),
        Ok(None) => respond::status(&original, &Status::not_found(&resource, &info.name)),
        Err(status) => respond::status(&original, &status),
    })
}

/// Turns a request into one for the earlier list.
fn redirect(parts: &mut Parts, earlier: &EarlierList) -> Result<(), Box<Status>> {
    let info = RequestInfo::parse("GET", &earlier.path, &earlier.query).map_err(internal_error)?;
    let mut path = parts.uri.path().trim_end_matches('/');
    if earlier.is_get {
        path = path.rsplit_once('/').map_or("/", |(collection, _)| collection);
        let is_metadata = parts.header(ACCEPT).contains("as=PartialObjectMetadata");
        let media_type = HeaderValue::from_static(if is_metadata { METADATA } else { JSON });
        parts.headers.insert(ACCEPT, media_type);
    }
    parts.uri = format!("{path}?{}", earlier.query).parse().map_err(internal_error)?;
    parts.extensions.insert(Target { info: info.into(), long_running: false });
    Ok(())
}

fn internal_error(error: impl std::fmt::Display) -> Box<Status> {
    Box::new(Status::internal(error))
}
