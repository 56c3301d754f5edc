//! Reasons why a server's certificate was rejected, in messages that name the certificate.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::anchor::{self, Anchors};
use super::issued::is_signed_by_any;
use crate::pki::CertInfo;

/// Kind of rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// No trusted root signed it.
    UnknownAuthority,
    /// It is valid for other names.
    NameMismatch,
    /// It has no subject alternative name; a common name is not sufficient.
    MissingSan,
    /// Its validity has ended.
    Expired,
    /// Its validity has not begun.
    NotYetValid,
    /// It must not be used for a server, or its signature or form is not acceptable.
    Unusable,
}

/// Rejected server certificate with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertFault {
    /// Kind of rejection.
    pub kind: FaultKind,
    /// Expected server name.
    pub expected: String,
    /// Names in the certificate.
    pub presented: Vec<String>,
    /// Subject of the certificate: the common name or, if there is none, the complete subject.
    pub subject: String,
    /// Issuer that the certificate names.
    pub issuer: String,
    /// Detail that depends on the kind: the date, or the reason why it is unusable.
    pub detail: String,
}

impl fmt::Display for CertFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, subject, issuer, detail, .. } = self;
        match self.kind {
            FaultKind::UnknownAuthority => {
                write!(f, "certificate {subject:?} is signed by unknown authority {issuer:?}")
            }
            FaultKind::NameMismatch => {
                let names = self.presented.join(", ");
                write!(f, "certificate is valid for {names}, not {expected}")
            }
            FaultKind::MissingSan => write!(
                f,
                "certificate {subject:?} has no subject alternative names, so it is not valid for {expected}"
            ),
            FaultKind::Expired => write!(f, "certificate {subject:?} has expired: {detail}"),
            FaultKind::NotYetValid => write!(f, "certificate {subject:?} is not yet valid: {detail}"),
            FaultKind::Unusable => write!(f, "certificate {subject:?} is not usable: {detail}"),
        }
    }
}

impl std::error::Error for CertFault {}

impl CertFault {
    /// Returns the fault in the error of a failed handshake, if any.
    pub fn from_error(error: &rustls::Error) -> Option<&Self> {
        match error {
            rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) => {
                cause.downcast_ref()
            }
            _ => None,
        }
    }

    fn explain(error: &CertificateError, leaf: &CertificateDer<'_>, name: &ServerName<'_>) -> Self {
        let info = CertInfo::parse(leaf).unwrap_or_default();
        let presented: Vec<String> =
            info.dns_names.iter().cloned().chain(info.ip_addresses.iter().map(ToString::to_string)).collect();
        let (kind, detail) = match error {
            CertificateError::UnknownIssuer => (FaultKind::UnknownAuthority, String::new()),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                let kind = if presented.is_empty() { FaultKind::MissingSan } else { FaultKind::NameMismatch };
                (kind, String::new())
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                (FaultKind::Expired, format!("it was valid until {}", info.not_after_text()))
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                (FaultKind::NotYetValid, format!("it is valid from {}", info.not_before_text()))
            }
            other => (FaultKind::Unusable, unusable_reason(other, &info).to_owned()),
        };
        let expected = name.to_str().into_owned();
        Self { kind, expected, presented, subject: info.display_name(), issuer: info.issuer, detail }
    }
}

/// Returns the reason why a certificate is unusable, without type names of the library.
fn unusable_reason(error: &CertificateError, info: &CertInfo) -> &'static str {
    match error {
        CertificateError::BadEncoding => "it is not a valid X.509 certificate",
        CertificateError::Revoked => "it is revoked",
        CertificateError::UnhandledCriticalExtension => "it has an unsupported critical extension",
        CertificateError::BadSignature => "its signature is wrong",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its extended key usage does not allow servers"
        }
        _ if info.is_ca => "it is a CA certificate that is neither trusted nor signed by a trusted CA",
        _ => "it cannot be verified",
    }
}

/// Verifier that accepts certificates that webpki accepts or the bundle contains, and explains rejections.
#[derive(Debug)]
pub(super) struct ExplainingVerifier {
    /// Verifier of webpki, or `None` if the bundle contains no authority.
    inner: Option<Arc<WebPkiServerVerifier>>,
    anchors: Anchors,
    provider: Arc<CryptoProvider>,
}

impl ExplainingVerifier {
    pub(super) fn new(
        inner: Option<Arc<WebPkiServerVerifier>>,
        anchors: Anchors,
        provider: Arc<CryptoProvider>,
    ) -> Self {
        Self { inner, anchors, provider }
    }

    /// True if a certificate that webpki rejected is contained in the bundle, or is an authority that one of the
    /// bundle has signed.
    fn is_trusted(&self, cause: &CertificateError, leaf: &CertificateDer<'_>, now: UnixTime) -> bool {
        // rustls has no variant for webpki's CaUsedAsEndEntity.
        let may_be_authority = matches!(cause, CertificateError::Other(_));
        let algorithms = &self.provider.signature_verification_algorithms;
        self.anchors.contains(leaf)
            || may_be_authority && is_signed_by_any(leaf, self.anchors.certs(), algorithms, now)
    }
}

impl ServerCertVerifier for ExplainingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = match &self.inner {
            Some(inner) => {
                inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Err(CertificateError::UnknownIssuer.into()),
        };
        let verified = match verified {
            Err(rustls::Error::InvalidCertificate(cause)) if self.is_trusted(&cause, end_entity, now) => {
                anchor::verify_anchor(end_entity, server_name, now).map(|()| ServerCertVerified::assertion())
            }
            verified => verified,
        };
        verified.map_err(|error| match error {
            rustls::Error::InvalidCertificate(cause) => {
                let fault = CertFault::explain(&cause, end_entity, server_name);
                rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(fault))))
            }
            other => other,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Verifier for `insecureSkipTLSVerify`: accepts any certificate whose owner signs the handshake.
#[derive(Debug)]
pub(super) struct InsecureVerifier {
    provider: Arc<CryptoProvider>,
}

impl InsecureVerifier {
    pub(super) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { provider }
    }
}

impl ServerCertVerifier for InsecureVerifier {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
