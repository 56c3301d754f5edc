//! What the process lends to the control service.

use std::sync::Arc;

use portico_auditor::Auditor;
use portico_kit::connection_runtimes::ConnectionRuntimes;
use portico_kit::metrics;
use portico_kit::offload::Offload;
use portico_kit::telemetry::Telemetry;

/// See the module.
pub struct Process {
    /// Metrics of the process.
    pub metrics: metrics::Registry,
    /// The log.
    pub telemetry: Telemetry,
    /// Threads that serve connections.
    pub runtimes: Arc<ConnectionRuntimes>,
    /// Threads for work that takes long.
    pub offload: Arc<Offload>,
    /// Who records calls; without, nothing is.
    pub auditor: Option<Arc<Auditor>>,
}
