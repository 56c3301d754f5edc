//! To a backend: handler, transport, headers, upgrade, circuit.
//!
//! This room takes an authenticated, authorized request and one compiled route, and brings back the
//! backend's answer or a Status that names what failed. It must not know how routes are found, how callers
//! are authenticated, what kinds exist, or what a body means: bytes pass through.

mod body;
mod context;
mod handler;
mod headers;
mod location;
mod metrics;
mod observation;
mod outgoing;
mod refusal;
mod settings;
mod transport;
mod upgrade;
mod upstream;

pub use body::{BoxError, ProxyBody, RequestBody};
pub use context::ProxyContext;
pub use handler::Proxy;
pub use headers::{ClientAddress, Identity};
pub use metrics::ProxyMetrics;
pub use observation::Observation;
pub use refusal::{Refusal, Stage, Termination};
pub use settings::{Limits, ProxySettings};
pub use transport::{Transport, TransportError};
pub use upstream::Upstream;
