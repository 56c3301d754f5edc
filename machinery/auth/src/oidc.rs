//! OpenID Connect: tokens that an issuer of somebody else's has signed, and the users that they name.
//!
//! Upstream rules: plugin/pkg/authenticator/token/oidc, pkg/authentication/cel. Knows no clock, no files and no network: keys and
//! distributed claims are brought by whoever fetches them. Messages are upstream's, for they are read in TokenReviews.

mod algorithm;
mod authenticator;
mod claims;
mod distributed;
mod expression;
mod json;
mod key_set;
mod token;

pub use algorithm::SigningAlgorithm;
pub use authenticator::{ClaimRule, JwtAuthenticator, Mapping, UserRule};
pub use claims::Claims;
pub use distributed::Source;
pub use expression::Expression;
pub use key_set::{JsonWebKeys, MAX_KEYS};
pub use token::{MAX_TOKEN_BYTES, SignedToken, Unverified, Verification, untrusted_issuer};
