//! Certificates of a facade that runs in its own process: signed by the control service over the configuration connection,
//! stored on disk, and renewed after two thirds of their validity. Private keys never leave the machine.

mod client;
mod front_proxy;
mod serving;

pub use client::maintain_client_certificate;
pub use front_proxy::front_proxy_certificate;
pub use serving::serving_certificate;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portico_kit::pki::{
    CertInfo, CertProfile, FRONT_PROXY_CA, INTERNAL_CA, PairFiles, PemPair, PkiError, SigningRequest,
};
use portico_kit::tls::{CertPair, TlsError};
use tonic::{Code, Status};

use crate::control::sign::{Purpose, sign};
use crate::control_services::{CallReason, ControlServices, is_from_control_service};

/// Interval between checks whether a certificate is due for renewal.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Error of obtaining a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A key or a certificate cannot be created.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The signed certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The control service cannot be called with the certificate.
    #[error(transparent)]
    Connect(#[from] portico_proto::client::ConnectError),
    /// No control service responds.
    #[error("cannot reach the control service to have the certificate signed: {0}")]
    Unreachable(String),
    /// The control service refuses the request.
    #[error("the control service refuses to sign the certificate: {0}")]
    Refused(String),
    /// The control service has no CA for this kind of certificate.
    #[error("the control service refuses to sign the certificate: {0}")]
    NoAuthority(String),
}

impl CertificateError {
    /// Converts the status of a call that did not return a certificate.
    fn from_status(status: &Status) -> Self {
        let reason = CallReason(status).to_string();
        match status.code() {
            _ if !is_from_control_service(status) => Self::Unreachable(reason),
            Code::Unavailable => Self::Unreachable(reason),
            Code::FailedPrecondition => Self::NoAuthority(reason),
            _ => Self::Refused(reason),
        }
    }
}

/// True if two thirds of the validity have passed.
fn needs_renewal(pair: &CertPair) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    pair.info().needs_renewal(i64::try_from(now).unwrap_or(i64::MAX))
}

/// Issuer of certificates that the facade signs itself until a control service signs one.
const TEMPORARY_CA: &str = "portico-facade-ca";

/// True if neither a control service nor a facade issued the certificate. Such a pair is used as it is and never overwritten.
fn is_foreign(info: &CertInfo) -> bool {
    ![INTERNAL_CA, FRONT_PROXY_CA, TEMPORARY_CA].contains(&info.issuer.as_str())
}

/// Certificate and key on disk, renewed when due.
struct CertificateFiles {
    dir: PathBuf,
    name: &'static str,
}

impl CertificateFiles {
    fn new(dir: &Path, name: &'static str) -> Self {
        Self { dir: dir.to_owned(), name }
    }

    fn pair(&self) -> PairFiles {
        PairFiles::new(&self.dir, self.name)
    }

    /// Reads the pair. `None` if there is none, or if it was issued by a control service or a facade and cannot be used.
    ///
    /// # Errors
    /// The pair is foreign ([`is_foreign`]) and cannot be used.
    fn read(&self) -> Result<Option<(PemPair, CertPair)>, CertificateError> {
        let Some(pem) = self.pair().read()? else { return Ok(None) };
        match pem.cert_pair(self.name) {
            Ok(pair) => Ok(Some((pem, pair))),
            Err(error)
                if CertInfo::from_pem(self.name, &pem.cert_pem).is_ok_and(|info| !is_foreign(&info)) =>
            {
                tracing::warn!(%error, "ignoring the stored certificate");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a key, has it certified and stores both.
    async fn sign(
        &self,
        control: &ControlServices,
        profile: &CertProfile,
        purpose: Purpose,
    ) -> Result<(PemPair, CertPair), CertificateError> {
        let request = SigningRequest::create(profile)?;
        let signed = sign(control, &request.request_pem, purpose).await;
        let cert_pem = signed.map_err(|status| CertificateError::from_status(&status))?;
        let pem = PemPair { cert_pem, key_pem: request.key_pem };
        let pair = pem.cert_pair(self.name)?;
        if let Err(error) = self.pair().write(&pem) {
            tracing::warn!(%error, "cannot store the signed certificate, a restart requests another one");
        }
        Ok((pem, pair))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_control_service_that_answers_refuses() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let unreached = Status::from_error(Box::new(tonic::ConnectError(Box::new(refused))));
        let text = |status: &Status| CertificateError::from_status(status).to_string();
        let unreachable = "cannot reach the control service to have the certificate signed";
        assert_eq!(text(&unreached), format!("{unreachable}: connection refused"));
        assert_eq!(text(&Status::unavailable("why")), format!("{unreachable}: why"));
        for code in [Code::PermissionDenied, Code::InvalidArgument, Code::FailedPrecondition] {
            let status = Status::new(code, "why");
            assert_eq!(text(&status), "the control service refuses to sign the certificate: why", "{code}");
            let has_no_ca =
                matches!(CertificateError::from_status(&status), CertificateError::NoAuthority(_));
            assert_eq!(has_no_ca, code == Code::FailedPrecondition, "{code}");
        }
    }
}
