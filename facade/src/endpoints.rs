//! Endpoints of the facade itself: index, version, health, metrics, debug, discovery and OpenAPI.
//!
//! Each file has axum handlers; this one has the table of paths (upstream sections 4 and 5). Does not depend on
//! the routing order.

mod catalog;
mod chosen;
mod console;
mod flags;
mod flow_control;
mod grpc;
mod health;
mod index;
mod issuer;
mod json_body;
mod metrics;
mod pprof;
mod state;
mod test_faults;
mod version;
mod zpages;

pub use catalog::discovery;
pub use chosen::Chosen;
pub use state::{Console, Endpoints, TestFaults};

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, any};
use futures::{FutureExt, StreamExt, stream};
use http_body::Body as _;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use portico_kit::health::Endpoint as HealthEndpoint;
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
    place: BuiltinPath,
    handler: Handler,
}

impl Endpoint {
    /// Creates an endpoint for an exact path.
    fn at(path: &str, listing: Listing, handler: Handler) -> Self {
        let place = BuiltinPath { path: path.to_owned(), prefix: false, listing, answers_when_stale: false };
        Self { place, handler }
    }

    /// Creates an endpoint for everything below a path that ends in a slash.
    fn below(path: &str, listing: Listing, handler: Handler) -> Self {
        let mut endpoint = Self::at(path, listing, handler);
        endpoint.place.prefix = true;
        endpoint
    }

    /// Serves the endpoint even if the configuration is too old: after the maximum fail-static age, only health and endpoints
    /// that explain the state are served.
    fn when_stale(mut self) -> Self {
        self.place.answers_when_stale = true;
        self
    }
}

/// Endpoints of the console, of its data about this facade, and of the methods of the control service that it calls.
fn console_endpoints() -> Vec<Endpoint> {
    let mut all = vec![
        Endpoint::at("/console", Unlisted, any(console::redirect)).when_stale(),
        Endpoint::at(console_paths::PAGE, Unlisted, any(console::page)).when_stale(),
        Endpoint::below(console_paths::ASSETS, Unlisted, any(console::asset)).when_stale(),
        Endpoint::at("/console/data/last-hour", Unlisted, any(console::last_hour)).when_stale(),
        Endpoint::at("/console/data/backends", Unlisted, any(console::backends)).when_stale(),
        Endpoint::at("/console/data/audit", Unlisted, any(console::audit_tail)).when_stale(),
    ];
    all.extend(grpc::methods().map(|(path, handler)| Endpoint::at(path, Unlisted, handler).when_stale()));
    all
}

/// All built-in endpoints.
fn endpoints(chosen: &Chosen) -> Vec<Endpoint> {
    let Chosen { profiling, console, zpages, test_faults } = chosen;
    let mut all = vec![
        Endpoint::at("/", Unlisted, any(index::paths)),
        Endpoint::at("/index.html", Unlisted, any(index::paths)),
        Endpoint::at("/version", Listed, any(version::version)).when_stale(),
        Endpoint::at("/version/", Unlisted, any(version::version)).when_stale(),
        Endpoint::at("/metrics", Listed, any(metrics::all)).when_stale(),
        Endpoint::at("/metrics/slis", Listed, any(metrics::slis)).when_stale(),
        Endpoint::at("/apis", Listed, any(catalog::document)),
        Endpoint::at("/apis/", Listed, any(catalog::document)),
        Endpoint::at("/openapi/v2", Listed, any(catalog::document)),
        Endpoint::at("/openapi/v3", Listed, any(catalog::document)),
        Endpoint::below("/openapi/v3/", Listed, any(catalog::document)),
        Endpoint::at("/.well-known/openid-configuration", Listed, any(issuer::configuration)),
        Endpoint::at("/.well-known/openid-configuration/", Unlisted, any(issuer::configuration)),
        Endpoint::at("/openid/v1/jwks", Listed, any(issuer::keys)),
        Endpoint::at("/openid/v1/jwks/", Unlisted, any(issuer::keys)),
        Endpoint::at(
            "/debug/api_priority_and_fairness/dump_priority_levels",
            Unlisted,
            any(flow_control::priority_levels),
        ),
        Endpoint::at("/debug/api_priority_and_fairness/dump_queues", Unlisted, any(flow_control::queues)),
        Endpoint::at("/debug/api_priority_and_fairness/dump_requests", Unlisted, any(flow_control::requests)),
    ];
    for endpoint in HealthEndpoint::ALL {
        let root = format!("/{}", endpoint.name());
        let every = any(move |state, request| health::all(endpoint, state, request));
        let one = any(move |state, request| health::one(endpoint, state, request));
        // The index reads the names of checks from the health registry, because checks come and go.
        all.push(Endpoint::at(&root, Listed, every).when_stale());
        all.push(Endpoint::below(&format!("{root}/"), Unlisted, one).when_stale());
    }
    if zpages.flags.is_some() {
        all.push(Endpoint::at("/flagz", Listed, any(zpages::flagz)).when_stale());
    }
    if zpages.status {
        all.push(Endpoint::at("/statusz", Listed, any(zpages::statusz)).when_stale());
    }
    if *console {
        all.extend(console_endpoints());
    }
    if *test_faults {
        all.extend([
            Endpoint::at(test_faults::PATH, Unlisted, any(test_faults::collection)),
            Endpoint::below(test_faults::BELOW, Unlisted, any(test_faults::one)),
        ]);
    }
    if *profiling {
        all.extend([
            Endpoint::at("/debug/pprof", Unlisted, any(pprof::redirect)),
            Endpoint::below("/debug/pprof/", Unlisted, any(pprof::pprof)),
            Endpoint::at("/debug/flags", Unlisted, any(flags::index)),
            Endpoint::below("/debug/flags/", Unlisted, any(flags::index)),
            Endpoint::at("/debug/flags/v", Unlisted, any(flags::verbosity)).when_stale(),
        ]);
    }
    all
}

/// Paths of the built-in endpoints.
#[must_use]
pub fn paths(chosen: &Chosen) -> Vec<BuiltinPath> {
    endpoints(chosen).into_iter().map(|endpoint| endpoint.place).collect()
}

/// Router of the built-in endpoints.
pub fn router(state: Endpoints) -> Router {
    let mut router = Router::new();
    for Endpoint { place, handler } in endpoints(&state.chosen) {
        if place.prefix {
            router = router.route(&format!("{}{{*below}}", place.path), handler.clone());
        }
        router = router.route(&place.path, handler);
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
                Body::whole(frame.into_data().unwrap_or_default())
            }
            Some(Some(first)) => {
                let rest = stream::once(ready(first)).chain(BodyStream::new(body));
                Body::streamed(StreamBody::new(rest))
            }
            None => Body::streamed(body),
        }
    })
}
