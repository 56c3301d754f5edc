//! Signs PKCS#10 requests: subject, names and key come from the request, usages and validity from the caller.
//!
//! The certificate is encoded as Go's `x509.CreateCertificate` does, so that a subject with several organizations and an issuer
//! name that another tool encoded are identical byte for byte. Does not depend on signer names or policies.

use std::sync::Arc;

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use rustls::SignatureScheme;
use rustls::sign::SigningKey;
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::certificate_request::CertificateRequest;
use super::tbs::{self, CertificateParts, CertificateTerms};
use super::{PkiError, parse_certs, pem_text};
use crate::tls::CertPair;

/// Signature algorithms with their OIDs, in order of preference for each kind of key.
const ALGORITHMS: [(SignatureScheme, &[u64]); 5] = [
    (SignatureScheme::RSA_PKCS1_SHA256, &[1, 2, 840, 113_549, 1, 1, 11]),
    (SignatureScheme::ECDSA_NISTP256_SHA256, &[1, 2, 840, 10_045, 4, 3, 2]),
    (SignatureScheme::ECDSA_NISTP384_SHA384, &[1, 2, 840, 10_045, 4, 3, 3]),
    (SignatureScheme::ECDSA_NISTP521_SHA512, &[1, 2, 840, 10_045, 4, 3, 4]),
    (SignatureScheme::ED25519, &[1, 3, 101, 112]),
];
/// Length of a serial number.
const SERIAL_BYTES: usize = 16;

/// CA that signs requests.
#[derive(Clone)]
pub struct RequestSigner {
    key: Arc<dyn SigningKey>,
    certificate: CertificateDer<'static>,
    not_after: i64,
}

impl RequestSigner {
    /// Returns a signer with the certificate and key of a CA: RSA, ECDSA or Ed25519. `label` names it in errors.
    ///
    /// # Errors
    /// Returns an error if there is not exactly one certificate, or no algorithm for the key.
    pub fn new(label: &str, pair: &CertPair) -> Result<Self, PkiError> {
        let [certificate] = pair.chain() else {
            let reason = format!("{label}: expected 1 certificate, found {}", pair.chain().len());
            return Err(PkiError::Parse(reason));
        };
        let key = Arc::clone(&pair.certified_key().key);
        if algorithm(&*key).is_none() {
            return Err(PkiError::Parse(format!("{label}: unsupported type of key for a CA")));
        }
        Ok(Self { key, certificate: certificate.clone(), not_after: pair.info().not_after })
    }

    /// True if one of these certificates (PEM) has the same key.
    ///
    /// # Errors
    /// Returns an error if the certificates cannot be parsed.
    pub fn shares_key_with(&self, certificates: &str) -> Result<bool, PkiError> {
        let invalid = |error: String| PkiError::Parse(format!("a CA certificate: {error}"));
        let key = |der: &[u8]| {
            let (_, parsed) = X509Certificate::from_der(der).map_err(|error| invalid(error.to_string()))?;
            Ok::<_, PkiError>(parsed.public_key().raw.to_vec())
        };
        let own_key = key(&self.certificate)?;
        let parsed = parse_certs("certificates", certificates.as_bytes())
            .map_err(|error| invalid(error.to_string()))?;
        parsed.iter().try_fold(false, |found, other| Ok(found || key(other)? == own_key))
    }

    /// Returns the end of validity of the CA's certificate, in Unix seconds.
    #[must_use]
    pub fn not_after(&self) -> i64 {
        self.not_after
    }

    /// Signs a certificate with a random serial number, and returns it in PEM.
    ///
    /// # Errors
    /// Returns an error if the key cannot sign.
    pub fn sign(&self, request: &CertificateRequest, terms: &CertificateTerms) -> Result<String, PkiError> {
        let failed = |reason: &str| PkiError::Parse(format!("failed to sign certificate: {reason}"));
        let mut serial = [0; SERIAL_BYTES];
        SystemRandom::new().fill(&mut serial).map_err(|_| failed("no random numbers"))?;
        let (scheme, oid) = algorithm(&*self.key).ok_or_else(|| failed("no algorithm for the key"))?;
        let (_, issuer) =
            X509Certificate::from_der(&self.certificate).map_err(|_| failed("invalid CA certificate"))?;
        let parts = CertificateParts { request, terms, serial: &serial, issuer: &issuer, algorithm: oid };
        let tbs = tbs::encode_tbs(&parts);
        let signer = self.key.choose_scheme(&[scheme]).ok_or_else(|| failed("no algorithm for the key"))?;
        let signature = signer.sign(&tbs).map_err(|error| failed(&error.to_string()))?;
        Ok(pem_text("CERTIFICATE", &tbs::encode_certificate(&tbs, oid, &signature)))
    }
}

fn algorithm(key: &dyn SigningKey) -> Option<(SignatureScheme, &'static [u64])> {
    ALGORITHMS.into_iter().find(|(scheme, _)| key.choose_scheme(&[*scheme]).is_some())
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256,
        PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, SanType, SignatureAlgorithm,
    };

    use super::*;
    use crate::pki::CertInfo;

    const CLIENT_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];
    /// Unix seconds of 2026-01-01.
    const START: i64 = 1_767_225_600;

    fn ca(algorithm: &'static SignatureAlgorithm) -> CertPair {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "o");
        params.distinguished_name.push(DnType::CommonName, "ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let cert = params.self_signed(&key).unwrap().pem();
        CertPair::from_pem("ca", cert.as_bytes(), key.serialize_pem().as_bytes()).unwrap()
    }

    fn request() -> CertificateRequest {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "zoë");
        params.distinguished_name.push(DnType::OrganizationName, "b");
        params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 10]), "aa");
        params.distinguished_name.push(DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]), "uid");
        params.subject_alt_names = vec![
            SanType::URI("spiffe://a/b".try_into().unwrap()),
            SanType::DnsName("a.example".try_into().unwrap()),
            SanType::IpAddress("10.0.0.1".parse().unwrap()),
            SanType::Rfc822Name("a@example.com".try_into().unwrap()),
        ];
        CertificateRequest::from_der(params.serialize_request(&key).unwrap().der()).unwrap()
    }

    fn terms() -> CertificateTerms {
        CertificateTerms {
            key_usage: 0b101,
            extended_key_usage: vec![CLIENT_AUTH],
            not_before: START,
            not_after: START + 3600,
        }
    }

    #[test]
    fn requested_names_are_parsed() {
        let request = request();
        assert_eq!(request.common_name(), "zoë");
        assert_eq!(request.organizations(), ["b", "aa"]);
        assert_eq!(request.dns_names, ["a.example"]);
        assert_eq!(request.email_addresses, ["a@example.com"]);
        assert_eq!(request.ip_addresses, ["10.0.0.1".parse::<std::net::IpAddr>().unwrap()]);
        assert_eq!(request.uris, ["spiffe://a/b"]);
        assert!(CertificateRequest::from_der(b"0").is_err());
        assert!(super::super::certificate_request::address(&[1; 5]).unwrap_err().ends_with("length 5"));
    }

    #[test]
    fn keys_of_all_kinds_sign_verifiable_certificates() {
        for algorithm in [&PKCS_RSA_SHA256, &PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            let pair = ca(algorithm);
            let pem = RequestSigner::new("ca", &pair).unwrap().sign(&request(), &terms()).unwrap();
            let der = crate::pki::parse_certs("leaf", pem.as_bytes()).unwrap().remove(0);
            let (_, leaf) = X509Certificate::from_der(&der).unwrap();
            let (_, issuer) = X509Certificate::from_der(&pair.chain()[0]).unwrap();
            leaf.verify_signature(Some(issuer.public_key())).unwrap();
            assert_eq!(leaf.issuer().as_raw(), issuer.subject().as_raw());
        }
    }

    #[test]
    fn a_certificate_has_the_fields_of_the_request_and_of_the_terms() {
        let pair = ca(&PKCS_ECDSA_P256_SHA256);
        let signer = RequestSigner::new("ca", &pair).unwrap();
        let pem = signer.sign(&request(), &terms()).unwrap();
        let info = CertInfo::from_pem("leaf", &pem).unwrap();
        assert_eq!((info.common_name.as_str(), info.issuer.as_str()), ("zoë", "ca"));
        // One set in DER order, without the attribute that is not copied.
        assert_eq!(info.subject, "O=b + O=aa, CN=zoë");
        assert_eq!((info.not_before, info.not_after), (START, START + 3600));
        assert!(info.client_auth && !info.server_auth && !info.is_ca);
        assert_eq!((info.dns_names.len(), info.ip_addresses.len()), (1, 1));
        let der = crate::pki::parse_certs("leaf", pem.as_bytes()).unwrap().remove(0);
        let (_, leaf) = X509Certificate::from_der(&der).unwrap();
        let usage = leaf.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.digital_signature() && usage.value.key_encipherment());
        assert!(!usage.value.non_repudiation());
        assert!(leaf.basic_constraints().unwrap().unwrap().critical);
        let again = signer.sign(&request(), &terms()).unwrap();
        let der = crate::pki::parse_certs("leaf", again.as_bytes()).unwrap().remove(0);
        assert_ne!(X509Certificate::from_der(&der).unwrap().1.raw_serial(), leaf.raw_serial());
    }

    #[test]
    fn dates_of_every_century_are_written() {
        let signer = RequestSigner::new("ca", &ca(&PKCS_ECDSA_P256_SHA256)).unwrap();
        let pem = signer.sign(&request(), &CertificateTerms { not_after: 4_102_444_800, ..terms() }).unwrap();
        assert_eq!(CertInfo::from_pem("leaf", &pem).unwrap().not_after_text(), "2100-01-01T00:00:00Z");
    }

    #[test]
    fn a_bundle_is_rejected_as_signer() {
        let pair = ca(&PKCS_ECDSA_P256_SHA256);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let cert = CertificateParams::default().self_signed(&key).unwrap().pem();
        let other = RequestSigner::new("ca", &pair).unwrap();
        assert!(other.not_after() > START);
        let two =
            CertPair::from_pem("two", format!("{cert}{cert}").as_bytes(), key.serialize_pem().as_bytes());
        let error = RequestSigner::new("two", &two.unwrap()).err().unwrap().to_string();
        assert!(error.contains("expected 1 certificate, found 2"), "{error}");
    }
}
