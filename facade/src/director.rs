//! The director: selects the handler of a request with one lookup in one snapshot of the routes.
//!
//! Delegates in order: the aggregator (its mux: endpoints, groups, routes), the local chain (core server, then API
//! extensions), not found. Does not depend on how the handlers produce responses.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use futures::future::BoxFuture;
use http::Uri;
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use portico_facade_catalog::Catalog;
use portico_kit::request_trace::RequestTrace;
use portico_kit::spans;
use portico_machinery::Status;
use portico_machinery::api_path::ApiPath;
use portico_machinery::discovery::Source;
use portico_machinery::route::Route;
use portico_machinery::status::{Cause, Reason};
use portico_proxy::{Proxy, ProxyContext, RouteEntry};
use tower::{Service, ServiceExt};

use crate::body::Body;
use crate::endpoints::{discovery, from_axum};
use crate::freshness::Freshness;
use crate::handler::HandlerResult;
use crate::local::LocalHandler;
use crate::peers::{Peers, mark_forwarded};
use crate::proxied_page;
use crate::render::Renderer;
use crate::request::{BeforeMuxComplete, Caller, Request, RequestView, Response};
use crate::respond;
use crate::route_table::{RouteTable, Target};

/// Handlers the director can dispatch to.
pub struct Delegates {
    /// Age of the configuration, which must not be too old.
    pub freshness: Arc<Freshness>,
    /// Endpoints of the facade itself.
    pub endpoints: Router,
    /// Serves discovery.
    pub catalog: Arc<Catalog>,
    /// Renders large documents.
    pub renderer: Renderer,
    /// Proxy to backends.
    pub proxy: Proxy,
    /// Other servers behind the same address, if requests may be forwarded to them.
    pub peers: Option<Arc<Peers>>,
    /// Serves local APIs through the control service.
    pub local: LocalHandler,
}

/// Selects the handler of each request. Clones share everything.
#[derive(Clone)]
pub struct Director {
    delegates: Arc<Delegates>,
}

/// Handler of a path that the mux does not contain.
#[derive(Debug, PartialEq, Eq)]
enum Delegate {
    Discovery,
    Objects,
    /// Custom resources. The control service knows them before their discovery is loaded here; resources that it does not know
    /// are not found.
    Custom,
    /// A path that belongs to the local chain but does not exist: answered with a Status.
    NoRoute,
    NotFound,
}

impl Delegate {
    /// Description for a trace; `Err` if the request ends here.
    fn description(&self) -> Result<&'static str, &'static str> {
        match self {
            Self::Discovery => Ok("this facade: discovery"),
            Self::Objects => Ok("the control service: a built-in resource"),
            Self::Custom => Ok("the control service: a custom resource, if a definition serves it"),
            Self::NoRoute => Err("no route: the group is built in, and has no such version or resource"),
            Self::NotFound => Err("not found: neither an APIService nor a definition serves this path"),
        }
    }
}

impl Director {
    /// Creates a director for these handlers.
    #[must_use]
    pub fn new(delegates: Delegates) -> Self {
        Self { delegates: Arc::new(delegates) }
    }
}

impl Service<Request> for Director {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, HandlerResult>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    /// The future of a proxied request, of which there can be very many, does not reserve space for the state of other handlers.
    fn call(&mut self, request: Request) -> Self::Future {
        let this = self.delegates.clone();
        let target = request.active_config().routes.find(&request.info().path).cloned();
        if this.freshness.is_expired() && !matches!(target, Some(Target::Builtin { when_stale: true })) {
            return Box::pin(ready(Ok(respond::status(&request, &configuration_too_old()))));
        }
        if let Some(peer) = this.peer(&request) {
            return Box::pin(async move { Ok(this.forward_to_peer(&peer, request).await) });
        }
        match target {
            Some(Target::Route(upstream)) if !upstream.route().is_local() => {
                Box::pin(async move { Ok(this.serve_aggregated(&upstream, request).await) })
            }
            target => Box::pin(async move { Ok(this.dispatch(target, request).await) }),
        }
    }
}

impl Delegates {
    /// Returns the peer that serves the request, if this server does not.
    fn peer(&self, request: &Request) -> Option<Arc<RouteEntry>> {
        self.peers.as_ref()?.find(request.info(), request.headers())
    }

    async fn forward_to_peer(&self, peer: &RouteEntry, mut request: Request) -> Response {
        let info = request.info().clone();
        mark_forwarded(request.headers_mut());
        let response = self.proxy_request(peer, request).await;
        if let Some(peers) = &self.peers {
            peers.record_forwarded(&info, response.status());
        }
        response
    }

    async fn serve_aggregated(&self, upstream: &RouteEntry, request: Request) -> Response {
        request.record().set_aggregated();
        self.proxy_request(upstream, request).await
    }

    async fn proxy_request(&self, upstream: &RouteEntry, request: Request) -> Response {
        let (record, info) = (request.record(), request.info().clone());
        let is_relayed = proxied_page::is_relayed(request.headers());
        if info.is_resource_request {
            record.set_resource_known_if_seen();
        }
        if let Some(trace) = record.trace() {
            trace.record_duration("router", Duration::ZERO, describe_backend(upstream.route()));
        }
        let (connection, audit_id) = (request.connection().clone(), request.audit_id().clone());
        let identity = request.extension::<Caller>().map(|Caller(user)| connection.identity(user));
        let context = ProxyContext {
            identity: identity.as_deref(),
            audit_id: &audit_id,
            client: Some(&connection.client),
            request_info: &info,
            deadline: record.deadline().map(Into::into),
            trace: record.trace(),
        };
        let span = spans::client("HTTP request to a backend");
        if span.is_recorded() {
            span.set_attribute("apiservice", upstream.route().name.clone());
        }
        // Headers are built within the span.
        let proxied = async { self.proxy.handle(upstream, request.map(Body::into_proxy), context).await };
        let mut response = span.instrument(proxied).await;
        if !is_relayed {
            proxied_page::confine(response.headers_mut());
        }
        // Names that a backend does not know must not become labels.
        if info.is_resource_request && response.status().as_u16() < 300 {
            record.set_known_resource(true);
        }
        response.map(Body::from)
    }

    async fn dispatch(&self, target: Option<Target>, request: Request) -> Response {
        if let Some(unsent) =
            request.trace().and_then(|trace| trace_dispatch(trace, target.as_ref(), &request))
        {
            return unsent;
        }
        match target {
            Some(Target::Builtin { .. }) => self.serve_builtin(request).await,
            Some(Target::Group) => self.serve_group(request).await,
            Some(Target::Route(_)) | None => self.delegate_request(request).await,
        }
    }

    async fn serve_builtin(&self, mut request: Request) -> Response {
        // The router matches the encoded path, the mux the decoded one.
        if request.uri().path().contains('%') {
            *request.uri_mut() = with_path(request.uri(), &request.info().path);
        }
        from_axum(self.endpoints.clone().oneshot(request).await)
    }

    async fn serve_group(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        match discovery(&self.catalog, &self.renderer, &parts).await {
            Some(response) => response,
            None => self.delegate_request(Request::from_parts(parts, body)).await,
        }
    }

    async fn delegate_request(&self, request: Request) -> Response {
        let info = request.info();
        let delegate =
            select_delegate(&request.active_config().routes, info.api_path(), info.is_resource_request);
        let is_before_mux_complete = request.extension::<BeforeMuxComplete>().is_some();
        match delegate {
            Delegate::Discovery => self.serve_discovery(&request.into_parts().0).await,
            // Until all definitions are loaded, no resource is reported as missing.
            Delegate::Custom if is_before_mux_complete => respond::not_found(&request),
            Delegate::Objects | Delegate::Custom => self.local.handle(request).await,
            Delegate::NoRoute => respond::status(&request, &Status::route_not_found()),
            Delegate::NotFound => respond::not_found(&request),
        }
    }

    async fn serve_discovery(&self, request: &Parts) -> Response {
        match discovery(&self.catalog, &self.renderer, request).await {
            Some(response) => response,
            None => respond::status(request, &Status::route_not_found()),
        }
    }
}

/// Selects a handler in upstream's order: the web-service roots of the core server, then the resources of CRDs.
fn select_delegate(routes: &RouteTable, path: ApiPath<'_>, is_resource: bool) -> Delegate {
    let (group, version, is_resource) = match path {
        ApiPath::Core if routes.is_builtin_group("") => return Delegate::Discovery,
        ApiPath::Group(group) if routes.is_builtin_group(group) => return Delegate::Discovery,
        ApiPath::Version { group, version } if routes.local_source(group, version).is_some() => {
            return Delegate::Discovery;
        }
        ApiPath::Version { group, version } => (group, version, false),
        ApiPath::Below { group, version } => (group, version, is_resource && !version.is_empty()),
        _ => return Delegate::NotFound,
    };
    match routes.local_source(group, version) {
        Some(Source::Builtin) if is_resource => Delegate::Objects,
        _ if routes.is_builtin_group(group) => Delegate::NoRoute,
        _ if is_resource => Delegate::Custom,
        _ => Delegate::NotFound,
    }
}

/// Returns the URI with another path, escaped only as far as necessary.
fn with_path(uri: &Uri, path: &str) -> Uri {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_');
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let escaped = format!("{}{query}", utf8_percent_encode(path, ESCAPED));
    escaped.parse().unwrap_or_else(|_| uri.clone())
}

/// Adds the selected handler to the trace. Returns the response if the request must not be sent to the handler.
fn trace_dispatch(trace: &RequestTrace, target: Option<&Target>, request: &Request) -> Option<Response> {
    let info = request.info();
    let delegate =
        || select_delegate(&request.active_config().routes, info.api_path(), info.is_resource_request);
    let handler = match target {
        Some(Target::Builtin { .. }) => Ok("this facade"),
        Some(Target::Group) => Ok("this facade: discovery"),
        Some(Target::Route(_)) | None => delegate().description(),
    };
    match handler {
        Ok(description) => trace.record_duration("router", Duration::ZERO, description),
        Err(description) => trace.record_refused("router", description),
    }
    if trace.should_send() || handler.is_err() {
        return None;
    }
    trace.stop("not sent");
    Some(Response::new(Body::empty()))
}

/// Describes the APIService and its backend.
fn describe_backend(route: &Route) -> String {
    let Some(backend) = &route.backend else { return format!("APIService {}", route.name) };
    let service = &backend.service;
    let policy = backend.policy.to_string();
    let policy = if policy.is_empty() { policy } else { format!("; {policy}") };
    let (namespace, name, port) = (&service.namespace, &service.name, service.port);
    format!("APIService {}: Service {namespace}/{name}:{port}{policy}", route.name)
}

fn configuration_too_old() -> Status {
    let message = "the control service has been unreachable for longer than --fail-static-max-age allows";
    Status::failure(Reason::ServiceUnavailable, message).with_cause(Cause {
        reason: "ConfigurationTooOld".to_owned(),
        message: message.to_owned(),
        field: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use portico_machinery::discovery::ServedVersion;

    fn table() -> RouteTable {
        let mut table = RouteTable::default();
        for (group, version, source) in
            [("", "v1", Source::Builtin), ("apps", "v1", Source::Builtin), ("x.io", "v2", Source::Crd)]
        {
            let (group, version) = (group.to_owned(), version.to_owned());
            let key = format!("{group}/{version}");
            table.set_served(
                &key,
                Arc::new(ServedVersion { group, version, source, ..ServedVersion::default() }),
            );
        }
        table
    }

    #[test]
    fn the_local_chain_owns_the_paths_that_it_serves() {
        let table = table();
        for (path, want) in [
            ("/api", Delegate::Discovery),
            ("/api/", Delegate::Discovery),
            ("/api/v1", Delegate::Discovery),
            ("/api/v1/", Delegate::Discovery),
            ("/api/v1/pods", Delegate::Objects),
            ("/api/v2", Delegate::NoRoute),
            ("/api//v1", Delegate::NoRoute),
            ("/apis//batch", Delegate::NotFound),
            ("/apis//v1/pods", Delegate::NotFound),
            ("//api", Delegate::NotFound),
            ("/apis/apps", Delegate::Discovery),
            ("/apis/apps/", Delegate::Discovery),
            ("/apis/apps/v1", Delegate::Discovery),
            ("/apis/apps/v1/deployments/x/scale", Delegate::Objects),
            ("/apis/apps/v9/deployments", Delegate::NoRoute),
            ("/apis/x.io", Delegate::NotFound),
            ("/apis/x.io/v2", Delegate::Discovery),
            ("/apis/x.io/v2/things", Delegate::Custom),
            ("/apis/x.io/v3/things", Delegate::Custom),
            ("/apis/unknown/v1/things", Delegate::Custom),
            ("/apis/unknown", Delegate::NotFound),
            ("/apisx", Delegate::NotFound),
            ("/other", Delegate::NotFound),
        ] {
            let resource = path.matches('/').count() > 2;
            let got = select_delegate(&table, ApiPath::parse(path), resource);
            assert_eq!(got, want, "{path}");
        }
    }
}
