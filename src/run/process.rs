//! Parts of a process that the control service and the facade share.

use std::sync::Arc;
use std::time::Instant;

use portico_auditor::Auditor;
use portico_kit::connection_runtimes::ConnectionRuntimes;
use portico_kit::metrics::Registry;
use portico_kit::offload::Offload;
use portico_kit::telemetry::Telemetry;

use super::passed_sockets::PassedSockets;

/// Parts of a process that the control service and the facade share.
pub(super) struct Process {
    pub(super) registry: Registry,
    pub(super) telemetry: Telemetry,
    /// Threads that serve the connections of all listeners.
    pub(super) runtimes: Arc<ConnectionRuntimes>,
    /// Threads for requests whose computations take long.
    pub(super) offload: Arc<Offload>,
    /// Records HTTP and gRPC requests.
    pub(super) auditor: Option<Arc<Auditor>>,
    /// Sockets passed by the parent process.
    pub(super) sockets: PassedSockets,
    pub(super) started: Instant,
}
