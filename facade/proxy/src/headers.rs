//! Headers of a request to a backend, and of its response.
//!
//! The order matters for security: first every header that a client must not set is removed (hop-by-hop headers, all headers that
//! `Connection` names, credentials, identities), then the proxy's own headers are added, so that no header of
//! a client can remove or forge them.

mod forwarded;
mod hop_by_hop;
mod identity;
mod proxy_headers;
mod response;
mod strip;
mod trailers;

pub use forwarded::ClientAddress;
pub(crate) use forwarded::set_target;
pub(crate) use hop_by_hop::{Upgrade, requested_upgrade};
pub use identity::Identity;
pub(crate) use proxy_headers::ProxyHeaders;
pub(crate) use response::{clean_direct_response, clean_response};
pub(crate) use strip::{strip_client, strip_request};
pub(crate) use trailers::{announced_trailers, clean_trailers, keep_announced};

#[cfg(test)]
mod tests;
