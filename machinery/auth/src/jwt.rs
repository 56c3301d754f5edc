//! JSON Web Tokens of service accounts: keys, signatures, claims and the published key set.
//!
//! Implements a small part of JOSE (compact tokens signed with RS256, ES256, ES384 or ES512) with the crypto provider of TLS.
//! Does not depend on the clock, files or stored objects.

mod claims;
mod compact;
mod external;
mod jwk;
mod key;

pub use claims::{Claims, KubernetesClaims, LEEWAY, LEGACY_ISSUER, ObjectRef, TimeError};
pub use compact::{CompactToken, MalformedToken};
pub use external::{ExternalHeader, HeaderError};
pub use jwk::encode_key_set;
pub use key::{Algorithm, KeyError, PublicKey, SigningKey, encode_part};
