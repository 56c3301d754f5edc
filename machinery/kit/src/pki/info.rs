//! Contents of a certificate.

use std::net::IpAddr;

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate, X509Version};

use super::{PkiError, fingerprint, parse_certs};

/// Parts of a certificate that Portico uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertInfo {
    /// First common name of the subject; empty if there is none.
    pub common_name: String,
    /// Organizations of the subject, in order.
    pub organizations: Vec<String>,
    /// Complete subject as text.
    pub subject: String,
    /// Common name of the issuer, or its complete name as text.
    pub issuer: String,
    /// DNS names of the subject.
    pub dns_names: Vec<String>,
    /// IP addresses of the subject.
    pub ip_addresses: Vec<IpAddr>,
    /// Beginning of the validity, in Unix seconds.
    pub not_before: i64,
    /// End of the validity, in Unix seconds.
    pub not_after: i64,
    /// True if it may sign certificates.
    pub is_ca: bool,
    /// True if its version is older than the extension for CAs (basic constraints), so that it is not excluded as a CA.
    pub predates_extensions: bool,
    /// True if its extended key usage allows clients, or is absent.
    pub client_auth: bool,
    /// True if its extended key usage allows servers, or is absent.
    pub server_auth: bool,
    /// True if its signature uses SHA-1.
    pub sha1_signature: bool,
    /// SHA-256 hash of the certificate.
    pub fingerprint: [u8; 32],
}

impl CertInfo {
    /// Parses the first certificate of a PEM text; `label` names the text in errors.
    pub fn from_pem(label: &str, pem: &str) -> Result<Self, PkiError> {
        let certs = parse_certs(label, pem.as_bytes())?;
        certs.first().map_or_else(|| Err(PkiError::Parse(label.to_owned())), Self::parse)
    }

    /// Parses a certificate in DER.
    pub fn parse(der: &CertificateDer<'_>) -> Result<Self, PkiError> {
        let (_, cert) =
            X509Certificate::from_der(der).map_err(|_| PkiError::Parse("invalid DER".to_owned()))?;
        let subject = cert.subject();
        let text =
            |value: &x509_parser::x509::AttributeTypeAndValue<'_>| value.as_str().ok().map(str::to_owned);
        let common_name = subject.iter_common_name().find_map(text).unwrap_or_default();
        let issuer = cert.issuer().iter_common_name().find_map(text);
        let (dns_names, ip_addresses) = alternative_names(&cert);
        let usage = cert.extended_key_usage().ok().flatten();
        Ok(Self {
            common_name,
            organizations: subject.iter_organization().filter_map(text).collect(),
            subject: subject.to_string(),
            issuer: issuer.unwrap_or_else(|| cert.issuer().to_string()),
            dns_names,
            ip_addresses,
            not_before: cert.validity().not_before.timestamp(),
            not_after: cert.validity().not_after.timestamp(),
            is_ca: cert.is_ca(),
            predates_extensions: cert.version() != X509Version::V3,
            client_auth: usage.as_ref().is_none_or(|usage| usage.value.client_auth || usage.value.any),
            server_auth: usage.is_none_or(|usage| usage.value.server_auth || usage.value.any),
            sha1_signature: is_sha1(&cert.signature_algorithm.algorithm.to_id_string()),
            fingerprint: fingerprint(der),
        })
    }

    /// Returns the common name, the complete subject, or a placeholder if both are empty.
    pub fn display_name(&self) -> String {
        let candidates = [&self.common_name, &self.subject];
        candidates
            .into_iter()
            .find(|name| !name.is_empty())
            .cloned()
            .unwrap_or_else(|| "without subject".into())
    }

    /// Returns the fingerprint in lower-case hexadecimal.
    pub fn fingerprint_hex(&self) -> String {
        self.fingerprint.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// True if two thirds of its lifetime are over at `now` (Unix seconds), or if it is not valid yet: the clock of its issuer
    /// was ahead and has been corrected.
    pub fn needs_renewal(&self, now: i64) -> bool {
        let life = self.not_after.saturating_sub(self.not_before);
        now < self.not_before || now >= self.not_before.saturating_add(life / 3 * 2)
    }

    /// Returns the end of the validity in RFC 3339 format.
    pub fn not_after_text(&self) -> String {
        timestamp(self.not_after)
    }

    /// Returns the beginning of the validity in RFC 3339 format.
    pub fn not_before_text(&self) -> String {
        timestamp(self.not_before)
    }
}

fn timestamp(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

fn alternative_names(cert: &X509Certificate<'_>) -> (Vec<String>, Vec<IpAddr>) {
    let (mut dns, mut ips) = (Vec::new(), Vec::new());
    if let Ok(Some(extension)) = cert.subject_alternative_name() {
        for name in &extension.value.general_names {
            match name {
                GeneralName::DNSName(name) => dns.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => ips.extend(address(bytes)),
                _ => {}
            }
        }
    }
    (dns, ips)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

/// True for sha1WithRSAEncryption, dsa-with-sha1 and ecdsa-with-SHA1.
fn is_sha1(oid: &str) -> bool {
    matches!(oid, "1.2.840.113549.1.1.5" | "1.2.840.10040.4.3" | "1.2.840.10045.4.1")
}
