//! Public keys that verify tokens, and the key that signs tokens.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair, ParsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use portico_kit::pki::pem_reason;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::{PemObject, SectionKind};
use serde::Serialize;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_PKCS1_RSAENCRYPTION,
};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::SubjectPublicKeyInfo;

/// Signature algorithm. The type of the key determines the algorithm, as in upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA, PKCS #1 v1.5, SHA-256.
    Rs256,
    /// P-256, SHA-256.
    Es256,
    /// P-384, SHA-384.
    Es384,
    /// P-521, SHA-512.
    Es512,
}

impl Algorithm {
    /// Returns the JOSE name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
        }
    }

    /// Returns the algorithm with this JOSE name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Rs256, Self::Es256, Self::Es384, Self::Es512].into_iter().find(|one| one.name() == name)
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
            Self::Es512 => &signature::ECDSA_P521_SHA512_FIXED,
        }
    }

    fn from_key_info(info: &SubjectPublicKeyInfo<'_>) -> Option<Self> {
        let kind = &info.algorithm.algorithm;
        if *kind == OID_PKCS1_RSAENCRYPTION {
            return Some(Self::Rs256);
        }
        if *kind != OID_KEY_TYPE_EC_PUBLIC_KEY {
            return None;
        }
        let curve = info.algorithm.parameters.as_ref()?.as_oid().ok()?;
        [(OID_EC_P256, Self::Es256), (OID_NIST_EC_P384, Self::Es384), (OID_NIST_EC_P521, Self::Es512)]
            .into_iter()
            .find(|(oid, _)| *oid == curve)
            .map(|(_, algorithm)| algorithm)
    }
}

/// Error of reading or using a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The input contains no key.
    #[error("no PEM key found")]
    NoKey,
    /// A PEM block cannot be parsed.
    #[error("invalid PEM: {0}")]
    Pem(String),
    /// A key cannot be parsed, or has a type that is not supported.
    #[error("the key is neither RSA nor of the curves P-256, P-384 and P-521")]
    UnsupportedKey,
    /// No random numbers are available to generate a key or to sign.
    #[error("cannot generate a key or a signature")]
    Generate,
}

/// Public key with the ID by which tokens name it. Cheap to clone.
#[derive(Clone)]
pub struct PublicKey {
    id: Arc<str>,
    algorithm: Algorithm,
    der: Arc<[u8]>,
    parsed: Arc<ParsedPublicKey>,
    unpublished: bool,
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        (&self.id, &self.der, self.unpublished) == (&other.id, &other.der, other.unpublished)
    }
}

impl Eq for PublicKey {}

impl PublicKey {
    /// Parses a DER SubjectPublicKeyInfo. The ID is the base64url of its SHA-256, as in upstream.
    ///
    /// # Errors
    /// Returns [`KeyError::UnsupportedKey`] if the key cannot be used.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).map_err(|_| KeyError::UnsupportedKey)?;
        let algorithm = Algorithm::from_key_info(&info).ok_or(KeyError::UnsupportedKey)?;
        let parsed =
            ParsedPublicKey::new(algorithm.verification(), der).map_err(|_| KeyError::UnsupportedKey)?;
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, der)).into();
        Ok(Self { id, algorithm, der: der.into(), parsed: Arc::new(parsed), unpublished: false })
    }

    /// Parses every key of a PEM file: public keys, and the public keys of private keys and certificates.
    ///
    /// # Errors
    /// Returns [`KeyError`].
    pub fn all_from_pem(pem: &[u8]) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
            let (kind, der) = section.map_err(|e| KeyError::Pem(pem_reason(&e)))?;
            match kind {
                SectionKind::PublicKey => keys.push(Self::from_der(&der)?),
                SectionKind::Certificate => {
                    let (_, certificate) =
                        X509Certificate::from_der(&der).map_err(|_| KeyError::UnsupportedKey)?;
                    keys.push(Self::from_der(certificate.public_key().raw)?);
                }
                SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey => {
                    let private = PrivateKeyDer::from_pem(kind, der).ok_or(KeyError::UnsupportedKey)?;
                    keys.push(PrivateKeyPair::from_der(&private)?.public_key()?);
                }
                _ => {}
            }
        }
        if keys.is_empty() { Err(KeyError::NoKey) } else { Ok(keys) }
    }

    /// Sets the ID that the owner of the key uses.
    #[must_use]
    pub fn with_id(self, id: &str) -> Self {
        Self { id: id.into(), ..self }
    }

    /// Sets whether the key is excluded from the published key set.
    #[must_use]
    pub fn with_unpublished(self, unpublished: bool) -> Self {
        Self { unpublished, ..self }
    }

    /// True if the key is published to relying parties.
    #[must_use]
    pub fn is_published(&self) -> bool {
        !self.unpublished
    }

    /// Returns the key ID (`kid`).
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the signature algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the DER SubjectPublicKeyInfo.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// True if the owner of the key has signed the message.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.parsed.verify_sig(message, signature).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey")
            .field("id", &self.id)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

enum PrivateKeyPair {
    Rsa(rsa::KeyPair),
    Ecdsa(EcdsaKeyPair),
}

const CURVES: [&EcdsaSigningAlgorithm; 3] =
    [&ECDSA_P256_SHA256_FIXED_SIGNING, &ECDSA_P384_SHA384_FIXED_SIGNING, &ECDSA_P521_SHA512_FIXED_SIGNING];

impl PrivateKeyPair {
    fn from_der(key: &PrivateKeyDer<'_>) -> Result<Self, KeyError> {
        let on_a_curve = |read: &dyn Fn(&'static EcdsaSigningAlgorithm) -> Option<EcdsaKeyPair>| {
            CURVES.into_iter().find_map(read).map(Self::Ecdsa)
        };
        let pair = match key {
            PrivateKeyDer::Pkcs1(der) => rsa::KeyPair::from_der(der.secret_pkcs1_der()).ok().map(Self::Rsa),
            PrivateKeyDer::Sec1(der) => {
                on_a_curve(&|curve| EcdsaKeyPair::from_private_key_der(curve, der.secret_sec1_der()).ok())
            }
            PrivateKeyDer::Pkcs8(der) => {
                let der = der.secret_pkcs8_der();
                let rsa = rsa::KeyPair::from_pkcs8(der).ok().map(Self::Rsa);
                rsa.or_else(|| on_a_curve(&|curve| EcdsaKeyPair::from_pkcs8(curve, der).ok()))
            }
            _ => None,
        };
        pair.ok_or(KeyError::UnsupportedKey)
    }

    fn public_key(&self) -> Result<PublicKey, KeyError> {
        let der = match self {
            Self::Rsa(pair) => pair.public_key().as_der(),
            Self::Ecdsa(pair) => pair.public_key().as_der(),
        };
        PublicKey::from_der(der.map_err(|_| KeyError::UnsupportedKey)?.as_ref())
    }
}

/// Key that signs tokens.
pub struct SigningKey {
    key_pair: PrivateKeyPair,
    public_key: PublicKey,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public_key).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'a str,
    kid: &'a str,
}

/// Encodes a part of a token: JSON in base64url.
///
/// # Errors
/// Returns [`KeyError::Generate`] if the value cannot be encoded as JSON.
pub fn encode_part(json: &impl Serialize) -> Result<String, KeyError> {
    serde_json::to_vec(json).map(|json| URL_SAFE_NO_PAD.encode(json)).map_err(|_| KeyError::Generate)
}

impl SigningKey {
    /// Parses the first private key of a PEM file: PKCS #8, PKCS #1 or SEC 1.
    ///
    /// # Errors
    /// Returns [`KeyError`].
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let private = PrivateKeyDer::from_pem_slice(pem).map_err(|e| KeyError::Pem(pem_reason(&e)))?;
        let key_pair = PrivateKeyPair::from_der(&private)?;
        Ok(Self { public_key: key_pair.public_key()?, key_pair })
    }

    /// Generates a P-256 key in PEM.
    ///
    /// # Errors
    /// Returns [`KeyError::Generate`] if no random numbers are available.
    pub fn generate_pem() -> Result<String, KeyError> {
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| KeyError::Generate)?;
        let digits = STANDARD.encode(der.as_ref());
        let lines: Vec<&str> =
            digits.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        Ok(format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n")))
    }

    /// Returns the public key.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// Signs claims and returns a compact token.
    ///
    /// # Errors
    /// Returns an error if no random numbers are available.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, KeyError> {
        let header = Header { alg: self.public_key.algorithm.name(), kid: &self.public_key.id };
        let message = format!("{}.{}", encode_part(&header)?, encode_part(claims)?);
        let signature = self.sign_message(message.as_bytes())?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn sign_message(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        match &self.key_pair {
            PrivateKeyPair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map(|()| signature)
                    .map_err(|_| KeyError::Generate)
            }
            PrivateKeyPair::Ecdsa(pair) => {
                pair.sign(&random, message).map(|s| s.as_ref().to_vec()).map_err(|_| KeyError::Generate)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt::{Claims, CompactToken};

    #[test]
    fn a_generated_key_signs_tokens_that_its_public_key_verifies() {
        let pem = SigningKey::generate_pem().unwrap();
        let key = SigningKey::from_pem(pem.as_bytes()).unwrap();
        let token = key.sign(&Claims { iss: "me".into(), ..Claims::default() }).unwrap();
        let again = PublicKey::all_from_pem(pem.as_bytes()).unwrap();
        assert_eq!((again.len(), again[0].id()), (1, key.public_key().id()));
        assert!(CompactToken::parse(&token).unwrap().is_signed_by(&again[0]));
        let other = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
        assert!(!CompactToken::parse(&token).unwrap().is_signed_by(other.public_key()));
    }

    #[test]
    fn keys_of_every_curve_and_of_rsa_sign() {
        use rcgen::{KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_RSA_SHA256};
        for (kind, algorithm) in [
            (&PKCS_ECDSA_P384_SHA384, Algorithm::Es384),
            (&PKCS_ECDSA_P521_SHA512, Algorithm::Es512),
            (&PKCS_RSA_SHA256, Algorithm::Rs256),
        ] {
            let pair = KeyPair::generate_for(kind).unwrap();
            let key = SigningKey::from_pem(pair.serialize_pem().as_bytes()).unwrap();
            assert_eq!(key.public_key().algorithm(), algorithm);
            let token = key.sign(&Claims::default()).unwrap();
            let public = &PublicKey::all_from_pem(pair.public_key_pem().as_bytes()).unwrap()[0];
            assert!(CompactToken::parse(&token).unwrap().is_signed_by(public), "{algorithm:?}");
        }
    }

    #[test]
    fn invalid_keys_are_refused() {
        assert_eq!(PublicKey::all_from_pem(b"x").unwrap_err(), KeyError::NoKey);
        assert!(SigningKey::from_pem(b"x").is_err());
        assert_eq!(PublicKey::from_der(b"x").unwrap_err(), KeyError::UnsupportedKey);
    }
}
