//! The facade as one tower service: the layers in upstream's order (DefaultBuildHandlerChain), outermost first, and the
//! director behind them.
//!
//! The order in which a request passes the layers is defined only here. The paths that the facade serves itself are the
//! table in [`crate::endpoints`].

use std::sync::Arc;

use http::header::{CACHE_CONTROL, HeaderValue};
use portico_kit::layer::InterceptLayer;
use portico_kit::lifecycle::Signal;
use tower::ServiceBuilder;
use tower::layer::layer_fn;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::validate_request::ValidateRequestHeaderLayer as Validate;

use crate::active_config::ActiveConfigCell;
use crate::handler::Handler;
use crate::layers::active_config::attach_active_config;
use crate::layers::audit::{Audit, AuditState};
use crate::layers::audit_init::audit_init;
use crate::layers::authentication::{Authentication, Authenticator};
use crate::layers::authorization::{Authorization, AuthorizationState};
use crate::layers::cors::{AllowedOrigins, Cors};
use crate::layers::goaway::goaway;
use crate::layers::impersonation::{Impersonation, ImpersonationState};
use crate::layers::lifecycle::lifecycle;
use crate::layers::max_in_flight::MaxInFlight;
use crate::layers::mux_complete::mux_complete;
use crate::layers::panic_recovery::PanicRecovery;
use crate::layers::priority_and_fairness::{FlowControl, PriorityAndFairness};
use crate::layers::received_timestamp::received_timestamp;
use crate::layers::request_deadline::{RequestDeadline, RequestDeadlines};
use crate::layers::request_info::ReadRequestInfo;
use crate::layers::retry_after::RetryAfter;
use crate::layers::route_trace::{RouteTrace, RouteTraceState};
use crate::layers::test_faults::FaultInjection;
use crate::layers::timeout::Timeout;
use crate::layers::trace::Trace;
use crate::layers::wait_group::CountShortRequests;
use crate::layers::warning::record_warnings;
use crate::layers::watch_termination::WatchTermination;
use crate::metrics::RequestMetrics;
use crate::test_faults::FaultStore;

/// Settings and shared state of the layers.
pub struct Layers {
    /// Signaled when all paths are known.
    pub mux_complete: Signal,
    /// Active configuration, of which each request uses one version.
    pub active_config: ActiveConfigCell,
    /// Log and metrics.
    pub metrics: Arc<RequestMetrics>,
    /// `--shutdown-send-retry-after`
    pub retry_after: Option<RetryAfter>,
    /// `--strict-transport-security-directives`
    pub hsts: Option<SetResponseHeaderLayer<HeaderValue>>,
    /// `--goaway-chance`
    pub goaway_chance: Option<f64>,
    /// `--shutdown-watch-termination-grace-period`
    pub watch_termination: Option<WatchTermination>,
    /// Short requests under way.
    pub wait_group: CountShortRequests,
    /// `--request-timeout`
    pub request_deadlines: RequestDeadlines,
    /// `--cors-allowed-origins`
    pub cors: Option<AllowedOrigins>,
    /// Authenticates callers.
    pub authentication: Authenticator,
    /// True if spans are exported.
    pub exports_spans: bool,
    /// Audits requests; `None` without audit.
    pub audits: Option<AuditState>,
    /// Permission check and output of request traces (`portico route try`).
    pub route_traces: RouteTraceState,
    /// Handles impersonation headers.
    pub impersonation: ImpersonationState,
    /// `--enable-priority-and-fairness`; its number of seats is the sum of the limits in `max_in_flight`.
    pub flow: Option<FlowControl>,
    /// Without it: `--max-requests-inflight`, `--max-mutating-requests-inflight`.
    pub max_in_flight: Option<MaxInFlight>,
    /// Authorizes requests.
    pub authorization: AuthorizationState,
    /// `--test-faults`: injects faults into requests that would otherwise be served.
    pub test_faults: Option<Arc<FaultStore>>,
}

/// Wraps the layers around `director`. Checks of storage-version preconditions would be the innermost layer.
pub fn app<H: Handler>(layers: Layers, director: H) -> impl Handler {
    let (authenticator, permissions) = (Arc::new(layers.authentication), Arc::new(layers.authorization));
    let (deadlines, impersonation, route_traces) =
        (layers.request_deadlines, layers.impersonation, layers.route_traces);
    let no_cache = HeaderValue::from_static("no-cache, private");
    ServiceBuilder::new()
        .layer(InterceptLayer::new(audit_init))
        .layer(layer_fn(PanicRecovery::new))
        .map_request(mux_complete(layers.mux_complete))
        .map_request(received_timestamp)
        .map_request(attach_active_config(layers.active_config))
        .layer(Validate::custom(ReadRequestInfo))
        .layer(InterceptLayer::new(lifecycle(layers.metrics)))
        .option_layer(layers.retry_after.map(Validate::custom))
        .option_layer(layers.hsts)
        .layer(SetResponseHeaderLayer::if_not_present(CACHE_CONTROL, no_cache))
        .option_layer(layers.goaway_chance.map(|chance| tower::util::MapRequestLayer::new(goaway(chance))))
        .option_layer(layers.watch_termination.map(Validate::custom))
        .layer(Validate::custom(layers.wait_group))
        .layer(layer_fn(|inner| RequestDeadline::new(inner, deadlines.clone())))
        .layer(layer_fn(Timeout::new))
        .layer(InterceptLayer::new(record_warnings))
        .option_layer(layers.cors.map(|allowed| layer_fn(move |inner| Cors::new(inner, allowed.clone()))))
        .layer(layer_fn(|inner| Authentication::new(inner, authenticator.clone())))
        .option_layer(layers.exports_spans.then(|| layer_fn(Trace::new)))
        .option_layer(layers.audits.map(|audits| layer_fn(move |inner| Audit::new(inner, audits.clone()))))
        .layer(layer_fn(|inner| RouteTrace::new(inner, route_traces.clone())))
        .layer(layer_fn(|inner| Impersonation::new(inner, impersonation.clone())))
        .option_layer(
            layers.flow.map(|flow| layer_fn(move |inner| PriorityAndFairness::new(inner, flow.clone()))),
        )
        .option_layer(layers.max_in_flight.map(Validate::custom))
        .layer(layer_fn(|inner| Authorization::new(inner, permissions.clone())))
        .option_layer(
            layers
                .test_faults
                .map(|faults| layer_fn(move |inner| FaultInjection::new(inner, faults.clone()))),
        )
        .service(director)
}

#[cfg(test)]
mod tests;
