//! Endpoints of the facade itself: index, version, health, metrics, debug, discovery and OpenAPI.
//!
//! Each file has axum handlers; this one has the table of paths (upstream sections 4 and 5). Does not depend on
//! the routing order.

mod catalog;
mod console;
mod flags;
mod flow_control;
mod grpc;
mod health;
mod index;
mod issuer;
mod json_body;
mod metrics;
mod options;
mod pprof;
mod state;
mod test_faults;
mod version;
mod zpages;

pub use catalog::discovery;
pub use options::EndpointOptions;
pub use state::{Console, Endpoints, TestFaults};

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, any};
use futures::{FutureExt, StreamExt, stream};
use http_body::Body as _;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use portico_kit::health::HealthEndpoint;
use portico_kit::telemetry::Telemetry;

use crate::body::Body;
use crate::console_paths;
use crate::mux::Listing::{self, Listed, Unlisted};
use crate::request::Response;
use crate::respond;
use crate::route_table::BuiltinPath;

type Handler = MethodRouter<Arc<Endpoints>>;

/// A built-in path and its handler.
struct Endpoint {
    builtin_path: BuiltinPath,
    handler: Handler,
}

impl Endpoint {
    /// Creates an endpoint for an exact path.
    fn exact(path: &str, listing: Listing, handler: Handler) -> Self {
        let builtin_path =
            BuiltinPath { path: path.to_owned(), prefix: false, listing, answers_when_stale: false };
        Self { builtin_path, handler }
    }

    /// Creates an endpoint for everything below a path that ends in a slash.
    fn prefix(path: &str, listing: Listing, handler: Handler) -> Self {
        let mut endpoint = Self::exact(path, listing, handler);
        endpoint.builtin_path.prefix = true;
        endpoint
    }

    /// Serves the endpoint even if the configuration is too old: after the maximum fail-static age, only health and endpoints
    /// that explain the state are served.
    fn serve_when_stale(mut self) -> Self {
        self.builtin_path.answers_when_stale = true;
        self
    }
}

/// Endpoints of the console, of its data about this facade, and of the methods of the control service that it calls.
fn console_endpoints() -> Vec<Endpoint> {
    let mut all = vec![
        Endpoint::exact("/console", Unlisted, any(console::redirect)).serve_when_stale(),
        Endpoint::exact(console_paths::PAGE, Unlisted, any(console::page)).serve_when_stale(),
        Endpoint::prefix(console_paths::ASSETS, Unlisted, any(console::asset)).serve_when_stale(),
        Endpoint::exact("/console/data/last-hour", Unlisted, any(console::last_hour)).serve_when_stale(),
        Endpoint::exact("/console/data/backends", Unlisted, any(console::backends)).serve_when_stale(),
        Endpoint::exact("/console/data/audit", Unlisted, any(console::audit_tail)).serve_when_stale(),
    ];
    all.extend(
        grpc::methods().map(|(path, handler)| Endpoint::exact(path, Unlisted, handler).serve_when_stale()),
    );
    all
}

/// All built-in endpoints.
fn endpoints(options: &EndpointOptions) -> Vec<Endpoint> {
    let EndpointOptions { profiling, console, zpages, test_faults } = options;
    let mut all = vec![
        Endpoint::exact("/", Unlisted, any(index::paths)),
        Endpoint::exact("/index.html", Unlisted, any(index::paths)),
        Endpoint::exact("/version", Listed, any(version::version)).serve_when_stale(),
        Endpoint::exact("/version/", Unlisted, any(version::version)).serve_when_stale(),
        Endpoint::exact("/metrics", Listed, any(metrics::all)).serve_when_stale(),
        Endpoint::exact("/metrics/slis", Listed, any(metrics::slis)).serve_when_stale(),
        Endpoint::exact("/apis", Listed, any(catalog::document)),
        Endpoint::exact("/apis/", Listed, any(catalog::document)),
        Endpoint::exact("/openapi/v2", Listed, any(catalog::document)),
        Endpoint::exact("/openapi/v3", Listed, any(catalog::document)),
        Endpoint::prefix("/openapi/v3/", Listed, any(catalog::document)),
        Endpoint::exact("/.well-known/openid-configuration", Listed, any(issuer::configuration)),
        Endpoint::exact("/.well-known/openid-configuration/", Unlisted, any(issuer::configuration)),
        Endpoint::exact("/openid/v1/jwks", Listed, any(issuer::keys)),
        Endpoint::exact("/openid/v1/jwks/", Unlisted, any(issuer::keys)),
        Endpoint::exact(
            "/debug/api_priority_and_fairness/dump_priority_levels",
            Unlisted,
            any(flow_control::priority_levels),
        ),
        Endpoint::exact("/debug/api_priority_and_fairness/dump_queues", Unlisted, any(flow_control::queues)),
        Endpoint::exact(
            "/debug/api_priority_and_fairness/dump_requests",
            Unlisted,
            any(flow_control::requests),
        ),
    ];
    for endpoint in HealthEndpoint::ALL {
        let root = format!("/{}", endpoint.name());
        let all_checks = any(move |state, request| health::all(endpoint, state, request));
        let single_check = any(move |state, request| health::single(endpoint, state, request));
        // The index reads the names of checks from the health registry, because checks come and go.
        all.push(Endpoint::exact(&root, Listed, all_checks).serve_when_stale());
        all.push(Endpoint::prefix(&format!("{root}/"), Unlisted, single_check).serve_when_stale());
    }
    if zpages.flags.is_some() {
        all.push(Endpoint::exact("/flagz", Listed, any(zpages::flagz)).serve_when_stale());
    }
    if zpages.status {
        all.push(Endpoint::exact("/statusz", Listed, any(zpages::statusz)).serve_when_stale());
    }
    if *console {
        all.extend(console_endpoints());
    }
    if *test_faults {
        all.extend([
            Endpoint::exact(test_faults::PATH, Unlisted, any(test_faults::collection)),
            Endpoint::prefix(test_faults::PREFIX, Unlisted, any(test_faults::single)),
        ]);
    }
    if *profiling {
        all.extend([
            Endpoint::exact("/debug/pprof", Unlisted, any(pprof::redirect)),
            Endpoint::prefix("/debug/pprof/", Unlisted, any(pprof::pprof)),
            Endpoint::exact("/debug/flags", Unlisted, any(flags::index)),
            Endpoint::prefix("/debug/flags/", Unlisted, any(flags::index)),
            Endpoint::exact("/debug/flags/v", Unlisted, any(flags::verbosity)).serve_when_stale(),
        ]);
    }
    all
}

/// Paths of the built-in endpoints.
#[must_use]
pub fn builtin_paths(options: &EndpointOptions) -> Vec<BuiltinPath> {
    endpoints(options).into_iter().map(|endpoint| endpoint.builtin_path).collect()
}

/// Router of the built-in endpoints.
pub fn router(state: Endpoints) -> Router {
    let mut router = Router::new();
    for Endpoint { builtin_path, handler } in endpoints(&state.options) {
        if builtin_path.prefix {
            router = router.route(&format!("{}{{*below}}", builtin_path.path), handler.clone());
        }
        router = router.route(&builtin_path.path, handler);
    }
    router.fallback(not_found).with_state(Arc::new(state))
}

/// Router of the debug socket: profiles and flags.
pub fn debug_router(telemetry: Option<Telemetry>) -> Router {
    let verbosity =
        any(move |request| async move { flags::set_verbosity(telemetry.as_ref(), request).await });
    Router::new()
        .route("/debug/pprof", any(pprof::redirect))
        .route("/debug/pprof/", any(pprof::pprof))
        .route("/debug/pprof/{*below}", any(pprof::pprof))
        .route("/debug/flags", any(flags::index))
        .route("/debug/flags/", any(flags::index))
        .route("/debug/flags/{*below}", any(flags::index))
        .route("/debug/flags/v", verbosity)
        .fallback(not_found)
}

async fn not_found(request: axum::extract::Request) -> Response {
    respond::not_found(&request)
}

/// Converts a router's response. A body of known length that is in memory stays complete.
pub fn from_axum(answer: Result<axum::response::Response, Infallible>) -> Response {
    let Ok(response) = answer;
    response.map(|mut body| {
        if body.size_hint().exact().is_none() {
            return Body::streamed(body);
        }
        match body.frame().now_or_never() {
            Some(None) => Body::empty(),
            Some(Some(Ok(frame))) if body.is_end_stream() => {
                Body::full(frame.into_data().unwrap_or_default())
            }
            Some(Some(first)) => {
                let frames = stream::once(ready(first)).chain(BodyStream::new(body));
                Body::streamed(StreamBody::new(frames))
            }
            None => Body::streamed(body),
        }
    })
}
