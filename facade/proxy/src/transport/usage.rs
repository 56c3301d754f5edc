//! Current use of one backend.

use portico_machinery::route::ServiceReference;

/// Current use of one transport.
pub(super) struct Usage {
    pub(super) service: ServiceReference,
    /// Requests in flight.
    pub(super) in_flight: usize,
    /// Maximum number of requests in flight.
    pub(super) max_in_flight: usize,
    pub(super) endpoints: Vec<EndpointUsage>,
}

/// Current use of one address.
pub(super) struct EndpointUsage {
    pub(super) endpoint: String,
    /// `None` if all addresses have the same weight.
    pub(super) weight: Option<u32>,
    /// Open connections.
    pub(super) open: usize,
}
