//! The health endpoints, and checks of another process that count at them.

/// The three health endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `/healthz`, everything but what only readiness needs.
    Healthz,
    /// `/livez`, with the grace for boot checks.
    Livez,
    /// `/readyz`.
    Readyz,
}

impl Endpoint {
    /// All three, in upstream's order.
    pub const ALL: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];

    /// `healthz`, `livez` or `readyz`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// A check whose result arrives from elsewhere, already known: a facade shows the control service's
/// checks with these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteCheck {
    /// Name as at the endpoint.
    pub name: String,
    /// Where it counts.
    pub endpoints: Vec<Endpoint>,
    /// Why it fails; none = it passes.
    pub failure: Option<String>,
    /// What is not as it should be although it passes.
    pub warning: Option<String>,
}
