//! Why a client's chain is refused, in the words of Go's `crypto/x509`; those of the library name its types.

use rustls::CertificateError;

/// A certificate whose DER cannot be read.
pub(super) const MALFORMED: &str = "malformed certificate";
/// A certificate whose dates are wrong, either way.
pub(super) const EXPIRED: &str = "certificate has expired or is not yet valid";
/// A certificate that no root signed.
pub(super) const UNKNOWN_AUTHORITY: &str = "certificate signed by unknown authority";

/// What an error of the verifier means.
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
            "certificate specifies an incompatible key usage"
        }
        CertificateError::UnhandledCriticalExtension => "unhandled critical extension",
        _ => "certificate cannot be verified",
    }
}
