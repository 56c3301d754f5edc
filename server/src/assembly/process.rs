//! Resources of the process that the control service uses.

use std::sync::Arc;

use portico_auditor::Auditor;
use portico_kit::connection_runtimes::ConnectionRuntimes;
use portico_kit::metrics;
use portico_kit::offload::Offload;
use portico_kit::telemetry::Telemetry;

/// Resources of the process that the control service uses.
pub struct Process {
    /// Metrics of the process.
    pub metrics: metrics::Registry,
    /// Configuration of the log.
    pub telemetry: Telemetry,
    /// Runtimes that serve connections.
    pub runtimes: Arc<ConnectionRuntimes>,
    /// Threads for work that takes long.
    pub offload: Arc<Offload>,
    /// Audit log; `None` if calls are not audited.
    pub auditor: Option<Arc<Auditor>>,
}
