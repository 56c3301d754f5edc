//! JSON Web Tokens as service accounts carry them: keys, signatures, claims and the published key set.
//!
//! A small part of JOSE (compact tokens signed by RS256, ES256, ES384 or ES512) on the crypto that TLS uses. Knows no
//! clock, no files and no object.

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
