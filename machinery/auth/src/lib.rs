//! Who is calling and what they may do, on attributes rather than on HTTP.
//!
//! Both servers (the facade's HTTPS and the control service's gRPC) wrap this crate as tower layers, so that there is
//! one chain: [`authn::AuthenticatorChain`] names the caller, [`impersonate`] may replace them, [`authz::Authorizer`] decides.
//! Everything here is synchronous and in memory. It must not know HTTP types, gRPC, sockets, files or settings.

pub mod authn;
pub mod authz;
mod expressions;
pub mod forwarded;
pub mod headers;
pub mod impersonate;
pub mod jwt;
pub mod oidc;

pub use authn::{Authentication, AuthenticatorChain, Credentials, Method, Outcome, PeerChain};
pub use authz::{Authorizer, Decision, Verdict, forbidden};
pub use headers::HeaderValues;
