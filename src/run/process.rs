//! What every role has.

use std::sync::Arc;
use std::time::Instant;

use portico_auditor::Auditor;
use portico_kit::connection_runtimes::ConnectionRuntimes;
use portico_kit::metrics::Registry;
use portico_kit::offload::Offload;
use portico_kit::telemetry::Telemetry;

use super::passed_sockets::PassedSockets;

/// What every role has.
pub(super) struct Process {
    pub(super) registry: Registry,
    pub(super) telemetry: Telemetry,
    /// The threads that serve connections, of whichever listener.
    pub(super) runtimes: Arc<ConnectionRuntimes>,
    /// The threads for work that takes long, of whichever role.
    pub(super) offload: Arc<Offload>,
    /// Who records requests, over HTTP and gRPC alike.
    pub(super) auditor: Option<Arc<Auditor>>,
    /// The sockets that whoever started the process made.
    pub(super) sockets: PassedSockets,
    pub(super) started: Instant,
}
