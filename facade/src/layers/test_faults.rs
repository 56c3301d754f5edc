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
use portico_kit::layer::{Step, take_ready};
use portico_machinery::{GroupResource, RequestInfo, Status};
use tower::Service;

use crate::body::Body;
use crate::connection::Unanswered;
use crate::handler::{Answer, Handler};
use crate::request::{Request, RequestView, Response, Target};
use crate::respond;
use crate::route_table;
use crate::test_faults::{Asked, Claim, Earlier, Fault, FaultsInForce, WatchBody, item, name_in, refusal};

/// Size of an object that a test fault serves as of an earlier revision.
///
/// Limit (Serving, bytes): the request fails with 500.
const MAX_OBJECT: usize = 16 << 20;

const JSON: &str = "application/json";
/// List of metadata, whose items have the form that a client of metadata requests.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Service of the layer for test faults.
#[derive(Clone)]
pub struct Faulty<S> {
    faults: Arc<FaultsInForce>,
    inner: S,
}

impl<S> Faulty<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, faults: Arc<FaultsInForce>) -> Self {
        Self { faults, inner }
    }
}

impl<S: Handler> Service<Request> for Faulty<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = Step<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let info = request.info();
        // A fault that is set later can apply to an open watch.
        let concerns = info.is_resource_request && (info.verb == "watch" || !self.faults.is_empty());
        if !concerns {
            return Step::passed(self.inner.call(request));
        }
        let (faults, inner) = (Arc::clone(&self.faults), take_ready(&mut self.inner));
        Step::waiting(answer(faults, inner, request))
    }
}

async fn answer<S: Handler>(faults: Arc<FaultsInForce>, mut inner: S, request: Request) -> Answer {
    let (asked, can_be_stale) = (Asked::of(&request), is_local(&request));
    let claim = faults.claim(&asked, |fault| happens(fault, &request, can_be_stale));
    let response = match claim {
        Some(claim) => happen(claim, &mut inner, request).await?,
        None => inner.call(request).await?,
    };
    let is_watch = asked.info.verb == "watch" && response.status() == StatusCode::OK;
    if !is_watch {
        return Ok(response);
    }
    let media_type = header_text::first(response.headers(), CONTENT_TYPE).to_owned();
    let watch = |body| Body::streamed(WatchBody::new(body, &media_type, asked, can_be_stale, faults));
    Ok(response.map(watch))
}

/// True if the control service stores the objects and their history.
fn is_local(request: &Request) -> bool {
    match request.in_force().routes.find(&request.info().path) {
        Some(route_table::Target::Route(upstream)) => upstream.route().is_local(),
        _ => true,
    }
}

/// True if the fault can apply to the request now, rather than to a watch while it is open.
fn happens(fault: &Fault, request: &Request, can_be_stale: bool) -> bool {
    match fault {
        Fault::StaleReads { .. } => can_be_stale && earlier(fault, request).is_some(),
        other => !other.is_of_watches(),
    }
}

fn earlier(fault: &Fault, request: &Request) -> Option<Earlier> {
    let Fault::StaleReads { resource_version: Some(revision) } = fault else { return None };
    Earlier::of(request.info(), request.query(), revision.parse().ok()?)
}

async fn happen<S: Handler>(mut claim: Claim, inner: &mut S, request: Request) -> Answer {
    claim.hit();
    if let Some(status) = refusal(claim.fault(), request.info()) {
        return Ok(refused(claim.fault(), status, request).await);
    }
    if let Some(earlier) = earlier(claim.fault(), &request) {
        return read(&earlier, inner, request).await;
    }
    match claim.fault() {
        Fault::Latency { milliseconds } => {
            tokio::time::sleep(Duration::from_millis(*milliseconds)).await;
            inner.call(request).await
        }
        Fault::DropRequest {} => Ok(unanswered()),
        Fault::DropAnswer {} => inner.call(request).await.map(|_| unanswered()),
        _ => inner.call(request).await,
    }
}

/// Refuses a request. For a conflict, the message names the object; the name in a create request is in its body.
async fn refused(fault: &Fault, mut status: Status, request: Request) -> Response {
    let is_named = matches!(status.reason.as_str(), "AlreadyExists" | "Conflict");
    if !is_named || request.info().verb != "create" || !request.info().name.is_empty() {
        return respond::status(&request, &status);
    }
    let (parts, body) = request.into_parts();
    let sent = Limited::new(body, MAX_OBJECT).collect().await.map(|body| body.to_bytes());
    let info = RequestInfo { name: name_in(&sent.unwrap_or_default()), ..RequestInfo::clone(parts.info()) };
    status = refusal(fault, &info).unwrap_or(status);
    respond::status(&parts, &status)
}

/// Response for the log and the metrics; the client does not receive it.
fn unanswered() -> Response {
    let mut response = respond::text(StatusCode::INTERNAL_SERVER_ERROR, "a fault breaks the connection");
    response.extensions_mut().insert(Unanswered);
    response
}

/// Serves a read from a list of an earlier revision, or from its only item.
async fn read<S: Handler>(earlier: &Earlier, inner: &mut S, request: Request) -> Answer {
    let (asked, body) = request.into_parts();
    let mut parts = asked.clone();
    if let Err(status) = redirect(&mut parts, earlier) {
        return Ok(respond::status(&asked, &status));
    }
    let response = inner.call(Request::from_parts(parts, body)).await?;
    if !earlier.one || response.status() != StatusCode::OK {
        return Ok(response);
    }
    let found = Limited::new(response.into_body(), MAX_OBJECT).collect().await.map_err(internal);
    let found = found.and_then(|body| item(&body.to_bytes()).map_err(internal));
    let info = asked.info();
    let resource = GroupResource::new(info.api_group.clone(), info.resource.clone());
    Ok(match found {
        Ok(Some(object)) => respond::whole(StatusCode::OK, JSON, object),
        Ok(None) => respond::status(&asked, &Status::not_found(&resource, &info.name)),
        Err(status) => respond::status(&asked, &status),
    })
}

/// Turns a request into one for the earlier list.
fn redirect(parts: &mut Parts, earlier: &Earlier) -> Result<(), Box<Status>> {
    let info = RequestInfo::parse("GET", &earlier.path, &earlier.query).map_err(internal)?;
    let mut path = parts.uri.path().trim_end_matches('/');
    if earlier.one {
        path = path.rsplit_once('/').map_or("/", |(collection, _)| collection);
        let metadata = parts.header(ACCEPT).contains("as=PartialObjectMetadata");
        let wanted = HeaderValue::from_static(if metadata { METADATA } else { JSON });
        parts.headers.insert(ACCEPT, wanted);
    }
    parts.uri = format!("{path}?{}", earlier.query).parse().map_err(internal)?;
    parts.extensions.insert(Target { info: info.into(), long_running: false });
    Ok(())
}

fn internal(error: impl std::fmt::Display) -> Box<Status> {
    Box::new(Status::internal(error))
}
