//! Authentication, impersonation and authorization, based on attributes and independent of HTTP.
//!
//! Both servers (the facade's HTTPS and the control service's gRPC) wrap this crate as tower layers, so that there is
//! one chain: [`authn::AuthenticatorChain`] identifies the caller, [`impersonate`] may replace the user, [`authz::Authorizer`]
//! decides. Almost everything is synchronous and in memory; reviews and remote decisions are futures of the caller's. The crate
//! must not depend on HTTP types, gRPC, sockets, files or settings.

pub mod authn;
pub mod authz;
mod expressions;
pub mod forwarded;
pub mod headers;
pub mod impersonate;
pub mod jwt;
pub mod oidc;

pub use authn::{Authentication, AuthenticatorChain, AuthnMethod, AuthnOutcome, Credentials, PeerChain};
pub use authz::{Authorizer, Decision, Verdict, forbidden};
pub use headers::HeaderValues;
