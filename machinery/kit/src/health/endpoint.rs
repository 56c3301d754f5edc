//! Health endpoints, and results of checks of another process.

/// Health endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HealthEndpoint {
    /// `/healthz`: all checks except those that only concern readiness.
    Healthz,
    /// `/livez`: boot checks pass during the grace period.
    Livez,
    /// `/readyz`: all checks.
    Readyz,
}

impl HealthEndpoint {
    /// All endpoints, in upstream's order.
    pub const ALL: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];

    /// Returns `healthz`, `livez` or `readyz`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// Result of a check of another process: a facade serves the checks of the control service
/// in this form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteCheck {
    /// Name of the check at the endpoint.
    pub name: String,
    /// Endpoints that include the check.
    pub endpoints: Vec<HealthEndpoint>,
    /// Reason of the failure; `None` if it passes.
    pub failure: Option<String>,
    /// Warning of a check that passes, if any.
    pub warning: Option<String>,
}
