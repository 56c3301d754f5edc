//! Reasons why a client's chain is rejected, in the words of Go's `crypto/x509`; messages of the library contain type names.

use rustls::CertificateError;

/// The DER of a certificate cannot be parsed.
pub(super) const MALFORMED: &str = "malformed certificate";
/// A certificate is not valid at this time.
pub(super) const EXPIRED: &str = "certificate has expired or is not yet valid";
/// No root has signed a certificate.
pub(super) const UNKNOWN_AUTHORITY: &str = "certificate signed by unknown authority";

/// A certificate is not usable by clients.
pub(super) const INCOMPATIBLE_USAGE: &str = "certificate specifies an incompatible key usage";
/// A certificate has an unsupported critical extension.
pub(super) const UNHANDLED_EXTENSION: &str = "unhandled critical extension";

/// Returns the reason of an error of the verifier.
pub(super) fn chain_reason(error: &rustls::Error) -> &'static str {
    let rustls::Error::InvalidCertificate(cause) = error else {
        return "certificate cannot be verified";
    };
    match cause {
        CertificateError::UnknownIssuer => UNKNOWN_AUTHORITY,
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => EXPIRED,
        CertificateError::BadEncoding => MALFORMED,
        CertificateError::BadSignature => "certificate has a wrong signature",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            INCOMPATIBLE_USAGE
        }
        CertificateError::UnhandledCriticalExtension => UNHANDLED_EXTENSION,
        _ => "certificate cannot be verified",
    }
}
