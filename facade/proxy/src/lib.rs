//! Reverse proxy for backends: handler, transport, headers, upgrade, circuit.
//!
//! Takes an authenticated, authorized request and one compiled route (or a target that the control service has approved), and
//! returns the backend's response or a Status that names the failed stage. It does not depend on how routes are found, how
//! callers are authenticated, which kinds exist, or what a body contains: bytes are forwarded unchanged.

mod activity;
mod backend_counts;
mod body;
mod client_cert;
mod connect;
mod context;
mod handler;
mod headers;
mod links;
mod metrics;
mod mirror;
mod mirror_counts;
mod observation;
mod outgoing_request;
mod refusal;
mod refusal_text;
mod remote_command;
mod request_body;
mod request_target;
mod respond;
mod route_entry;
mod settings;
mod stage;
mod transport;
mod tunnel;
mod upgrade;
mod web_socket;

pub use body::ProxyBody;
pub use client_cert::ClientCert;
pub use connect::ConnectionRequest;
pub use context::ProxyContext;
pub use handler::Proxy;
pub use headers::{ClientAddress, Identity};
#[doc(hidden)]
pub use links::rewrite_links;
pub use metrics::ProxyMetrics;
pub use mirror_counts::MirrorStats;
pub use observation::{EjectionState, Observation, TargetState};
pub use refusal::Refusal;
pub use request_body::{BoxError, RequestBody};
pub use respond::Termination;
pub use route_entry::RouteEntry;
pub use settings::{Kubelets, Limits, ProxySettings};
pub use stage::Stage;
pub use transport::{Transport, TransportError};
pub use tunnel::Tunnel;
