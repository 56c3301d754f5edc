//! How much of one backend is in use.

use portico_machinery::route::ServiceReference;

/// Of one transport.
pub(super) struct Usage {
    pub(super) service: ServiceReference,
    /// Requests under way.
    pub(super) in_flight: usize,
    /// How many there may be.
    pub(super) most: usize,
    pub(super) endpoints: Vec<EndpointUsage>,
}

/// Of one address.
pub(super) struct EndpointUsage {
    pub(super) endpoint: String,
    /// Nothing where all have the same.
    pub(super) weight: Option<u32>,
    /// Open connections.
    pub(super) open: usize,
}
