//! Keys that an issuer publishes (RFC 7517).
//!
//! Keys of unsupported types are skipped; upstream rejects the whole set in that case.

use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::UnparsedPublicKey;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portico_gostd::json::error_text;
use serde::Deserialize;

use super::SigningAlgorithm;
use super::algorithm::VerificationParams;

/// Keys in the key set of an issuer.
///
/// Limit (Authentication and authorization): further keys are ignored.
pub const MAX_KEYS: usize = 256;

/// Key set of an issuer.
#[derive(Debug, Default)]
pub struct JsonWebKeys(Vec<VerificationKey>);

#[derive(Debug)]
struct VerificationKey {
    id: String,
    material: KeyMaterial,
}

enum KeyMaterial {
    Rsa(PublicKeyComponents<Vec<u8>>),
    /// Algorithm of the curve, and both coordinates after the prefix byte of an uncompressed point.
    Ec(SigningAlgorithm, Vec<u8>),
}

impl std::fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rsa(_) => "RSA",
            Self::Ec(..) => "EC",
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JwkSet {
    keys: Vec<Jwk>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Jwk {
    kid: String,
    kty: String,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl JsonWebKeys {
    /// Parses a key set.
    ///
    /// # Errors
    /// Returns an error if the JSON is not a key set.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let set: JwkSet = portico_gostd::json::from_slice(json).map_err(|error| error_text(&error))?;
        Ok(Self(set.keys.into_iter().filter_map(VerificationKey::from_jwk).take(MAX_KEYS).collect()))
    }

    /// True if one of the keys has signed the message. If `id` is not empty, only keys with that ID are tried.
    #[must_use]
    pub fn have_signed(
        &self,
        id: &str,
        algorithm: SigningAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let named = self.0.iter().filter(|key| id.is_empty() || key.id == id);
        named.into_iter().any(|key| key.material.has_signed(algorithm, message, signature))
    }
}

impl VerificationKey {
    fn from_jwk(jwk: Jwk) -> Option<Self> {
        let number = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let material = match jwk.kty.as_str() {
            "RSA" => KeyMaterial::Rsa(PublicKeyComponents { n: number(&jwk.n)?, e: number(&jwk.e)? }),
            "EC" => {
                let (algorithm, length) = match jwk.crv.as_str() {
                    "P-256" => (SigningAlgorithm::Es256, 32),
                    "P-384" => (SigningAlgorithm::Es384, 48),
                    "P-521" => (SigningAlgorithm::Es512, 66),
                    _ => return None,
                };
                let (x, y) = (number(&jwk.x)?, number(&jwk.y)?);
                if x.len() != length || y.len() != length {
                    return None;
                }
                KeyMaterial::Ec(algorithm, [&[4], x.as_slice(), y.as_slice()].concat())
            }
            _ => return None,
        };
        Some(Self { id: jwk.kid, material })
    }
}

impl KeyMaterial {
    fn has_signed(&self, algorithm: SigningAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm.verification_params()) {
            (Self::Rsa(key), VerificationParams::Rsa(check)) => key.verify(check, message, signature).is_ok(),
            (Self::Ec(curve_algorithm, point), VerificationParams::Ecdsa(check)) => {
                *curve_algorithm == algorithm
                    && UnparsedPublicKey::new(check, point).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt::{PublicKey, SigningKey, encode_key_set};

    #[test]
    fn unsupported_keys_are_skipped_and_the_set_is_bounded() {
        let pem = SigningKey::generate_pem().unwrap();
        let ours = encode_key_set(&PublicKey::all_from_pem(pem.as_bytes()).unwrap());
        let ours = String::from_utf8(ours).unwrap();
        let key = ours.strip_prefix(r#"{"keys":["#).unwrap().strip_suffix("]}").unwrap();
        let others = r#"{"kty":"OKP","crv":"Ed25519","x":"AA"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"oct"}"#;
        let set = |keys: &str| JsonWebKeys::parse(format!(r#"{{"keys":[{keys}]}}"#).as_bytes()).unwrap();
        assert_eq!(set(&format!("{others},{key}")).0.len(), 1);
        assert_eq!(set(&vec![key; MAX_KEYS + 1].join(",")).0.len(), MAX_KEYS);
        assert!(set(others).0.is_empty());
        for bad in ["", "[]", "{", r#"{"keys":{}}"#] {
            assert!(JsonWebKeys::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
