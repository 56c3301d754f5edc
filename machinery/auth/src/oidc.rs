//! OpenID Connect: verification of tokens that external issuers have signed, and the users that they name.
//!
//! Upstream rules: plugin/pkg/authenticator/token/oidc, pkg/authentication/cel. Does not depend on the clock, files or the
//! network: the caller fetches keys and distributed claims. Messages are upstream's, because users read them in TokenReviews.

mod algorithm;
mod authenticator;
mod claims;
mod distributed;
mod expression;
mod json;
mod key_set;
mod token;

pub use algorithm::SigningAlgorithm;
pub use authenticator::{ClaimMapping, ClaimRule, JwtAuthenticator, UserRule};
pub use claims::RawClaims;
pub use distributed::ClaimSource;
pub use expression::Expression;
pub use key_set::{JsonWebKeys, MAX_KEYS};
pub use token::{MAX_TOKEN_BYTES, SignedToken, TokenRequirements, VerificationError, untrusted_issuer};
