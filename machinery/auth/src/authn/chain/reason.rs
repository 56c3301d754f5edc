//! Why a client's chain is refused, in the words of Go's `crypto/x509`; those of the library name its types.

use rustls::CertificateError;

/// A certificate whose DER cannot be read.
pub(super) const MALFORMED: &str = "malformed certificate";
/// A certificate whose dates are wrong, either way.
pub(super) const EXPIRED: &str = "certificate has expired or is not yet valid";
/// A certificate that no root signed.
pub(super) const UNKNOWN_AUTHORITY: &str = "certificate signed by unknown authority";

/// A certificate for other purposes than those of clients.
pub(super) const INCOMPATIBLE_USAGE: &str = "certificate specifies an incompatible key usage";
/// A certificate with a critical extension that is not read here.
pub(super) const UNHANDLED_EXTENSION: &str = "unhandled critical extension";

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
            INCOMPATIBLE_USAGE
        }
        CertificateError::UnhandledCriticalExtension => UNHANDLED_EXTENSION,
        _ => "certificate cannot be verified",
    }
}
