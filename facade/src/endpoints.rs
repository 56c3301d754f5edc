//! What the facade itself answers: index, version, health, metrics, debug, discovery and OpenAPI.
//!
//! One file each; this one says which paths lead there (upstream 4 and 5). It must not know routing order.

mod catalog;
mod flags;
mod health;
mod index;
mod issuer;
mod metrics;
#[cfg(feature = "pprof")]
mod pprof;
mod version;

pub use version::VersionInfo;

use std::sync::Arc;

use http::header::ACCEPT;
use http::{Method, Response};
use portico_facade_catalog::Catalog;
use portico_kit::health as kit_health;
use portico_kit::telemetry::Telemetry;
use portico_machinery::Status;
use portico_machinery::accept::route_takes;
use portico_machinery::status::{Details, Reason};

use crate::body::Body;
use crate::context::RequestContext;
use crate::issuer::Issuer;
use crate::mux::Listing;
use crate::respond;
use crate::route_table::{Endpoint, RouteTable};

/// A built-in endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// `/`, `/index.html`
    Index,
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz`
    Health(kit_health::Endpoint),
    /// `/healthz/<check>` and so on
    HealthCheck(kit_health::Endpoint),
    /// `/metrics`
    Metrics,
    /// `/metrics/slis`
    Slis,
    /// `/debug/pprof`: the redirect
    PprofRoot,
    /// `/debug/pprof/...`
    Pprof,
    /// `/debug/flags`
    Flags,
    /// `/debug/flags/v`
    FlagsV,
    /// `/apis`, `/openapi/...`
    Catalog,
    /// `/.well-known/openid-configuration`
    OpenIdConfiguration,
    /// `/openid/v1/jwks`
    KeySet,
}

/// What the endpoints need.
pub struct Endpoints {
    /// The named checks.
    pub health: kit_health::Health,
    /// All metrics.
    pub registry: portico_kit::metrics::Registry,
    /// The health checks' own metrics, for `/metrics/slis`.
    pub slis: portico_kit::metrics::Registry,
    /// The level of the log, when it can be changed.
    pub telemetry: Option<Telemetry>,
    /// `/version`
    pub version: VersionInfo,
    /// `--profiling`
    pub profiling: bool,
    /// Discovery and OpenAPI.
    pub catalog: Arc<Catalog>,
    /// Who issues tokens.
    pub issuer: Arc<Issuer>,
}

/// Every built-in path.
#[must_use]
pub fn paths(profiling: bool) -> Vec<Endpoint> {
    use Listing::{Listed, Unlisted};
    let at = |path: &str, prefix: bool, listing: Listing, target: Fixed| Endpoint {
        path: path.to_owned(),
        prefix,
        listing,
        target,
    };
    let mut paths = vec![
        at("/", false, Unlisted, Fixed::Index),
        at("/index.html", false, Unlisted, Fixed::Index),
        at("/version", false, Listed, Fixed::Version),
        at("/version/", false, Unlisted, Fixed::Version),
        at("/metrics", false, Listed, Fixed::Metrics),
        at("/metrics/slis", false, Listed, Fixed::Slis),
        at("/apis", false, Listed, Fixed::Catalog),
        at("/apis/", false, Listed, Fixed::Catalog),
        at("/openapi/v2", false, Listed, Fixed::Catalog),
        at("/openapi/v3", false, Listed, Fixed::Catalog),
        at("/openapi/v3/", true, Listed, Fixed::Catalog),
        at("/.well-known/openid-configuration", false, Listed, Fixed::OpenIdConfiguration),
        at("/.well-known/openid-configuration/", false, Unlisted, Fixed::OpenIdConfiguration),
        at("/openid/v1/jwks", false, Listed, Fixed::KeySet),
        at("/openid/v1/jwks/", false, Unlisted, Fixed::KeySet),
    ];
    for endpoint in kit_health::Endpoint::ALL {
        let root = format!("/{}", endpoint.name());
        // The index takes the names of the checks from the checks: some come and go.
        paths.push(at(&root, false, Listed, Fixed::Health(endpoint)));
        paths.push(at(&format!("{root}/"), true, Unlisted, Fixed::HealthCheck(endpoint)));
    }
    if profiling {
        paths.extend([
            at("/debug/pprof", false, Unlisted, Fixed::PprofRoot),
            at("/debug/pprof/", true, Unlisted, Fixed::Pprof),
            at("/debug/flags", false, Unlisted, Fixed::Flags),
            at("/debug/flags/", true, Unlisted, Fixed::Flags),
            at("/debug/flags/v", false, Unlisted, Fixed::FlagsV),
        ]);
    }
    paths
}

impl Endpoints {
    /// Answers. Nothing means that there is no such path after all: the delegates' turn.
    pub async fn handle(
        &self,
        fixed: Fixed,
        table: &RouteTable,
        x: &mut RequestContext,
    ) -> Option<Response<Body>> {
        Some(match fixed {
            Fixed::Index => index::answer(&self.health, table),
            Fixed::Version => version::answer(&self.version, x),
            Fixed::Health(endpoint) => health::all(&self.health, endpoint, x).await,
            Fixed::HealthCheck(endpoint) => return health::one(&self.health, endpoint, x).await,
            Fixed::Metrics => metrics::answer(&self.registry, self.profiling, x),
            Fixed::Slis => metrics::answer(&self.slis, false, x),
            Fixed::Flags => flags::index(),
            Fixed::FlagsV => flags::verbosity(self.telemetry.as_ref(), x).await,
            Fixed::PprofRoot => see_pprof(),
            Fixed::Pprof => return self.pprof(x).await,
            Fixed::Catalog => return self.catalog(x).await,
            Fixed::OpenIdConfiguration => return issuer::configuration(&self.issuer, x),
            Fixed::KeySet => return issuer::keys(&self.issuer, x),
        })
    }

    /// Discovery and OpenAPI; nothing when the catalogue does not know the path.
    pub async fn catalog(&self, x: &RequestContext) -> Option<Response<Body>> {
        catalog::answer(&self.catalog, x).await
    }

    #[cfg(feature = "pprof")]
    async fn pprof(&self, x: &RequestContext) -> Option<Response<Body>> {
        pprof::answer(x).await
    }

    #[cfg(not(feature = "pprof"))]
    #[expect(clippy::unused_async, reason = "the same signature as with the feature")]
    async fn pprof(&self, _: &RequestContext) -> Option<Response<Body>> {
        let message = "profiles are left out of this build (cargo feature `pprof`)";
        Some(respond::text(http::StatusCode::NOT_IMPLEMENTED, message))
    }
}

fn see_pprof() -> Response<Body> {
    let mut response = respond::text(http::StatusCode::FOUND, "see /debug/pprof/");
    let target = http::HeaderValue::from_static("/debug/pprof/");
    response.headers_mut().insert(http::header::LOCATION, target);
    response
}

/// What a route that only reads and only knows one media type refuses: 405 and 406.
fn refusal(x: &RequestContext, media_type: &str) -> Option<Response<Body>> {
    if x.parts.method != Method::GET {
        return Some(respond::status(x, &Status::no_method()));
    }
    let accept = x.header(ACCEPT);
    if accept.is_empty() || route_takes(accept, &[media_type]) {
        return None;
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {media_type}");
    let status = Status::failure(Reason::NotAcceptable, message).with_details(Details::default());
    Some(respond::status(x, &status))
}
