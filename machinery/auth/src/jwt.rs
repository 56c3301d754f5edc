//! JSON Web Tokens of service accounts: keys, signatures, claims and the published key set.
//!
//! Implements a small part of JOSE (compact tokens signed with RS256, ES256, ES384 or ES512) with the crypto provider of TLS.
//! Does not depend on the clock, files or stored objects.

mod claims;
mod compact;
mod external;
mod jwk;
mod key;

pub use claims::{Claims, Kubernetes, LEEWAY, LEGACY_ISSUER, Ref, TimeError};
pub use compact::{Compact, Malformed};
pub use external::{ExternalHeader, HeaderError};
pub use jwk::key_set;
pub use key::{Algorithm, KeyError, PublicKey, SigningKey, part};
