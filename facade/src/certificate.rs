//! Certificates of a facade in a process of its own: signed by the control service over the config connection, kept on
//! disk, renewed when two thirds of their life have passed. Keys never travel.

mod client;
mod serving;

pub use client::keep_client_certificate;
pub use serving::signed_certificate;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portico_kit::atomic_file::{self, PRIVATE, PUBLIC};
use portico_kit::pki::{PemPair, PkiError, Profile, SigningRequest};
use portico_kit::tls::{CertPair, TlsError};

use crate::control::sign::{Purpose, sign};
use crate::transport::ControlTransport;

/// How often it is looked at whether a certificate is due.
const PERIOD: Duration = Duration::from_secs(60);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A key or a certificate cannot be made.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// What was signed cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The control service cannot be called with it.
    #[error(transparent)]
    Connect(#[from] portico_proto::client::ConnectError),
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The control service refuses, or is away.
    #[error("the control service does not sign: {0}")]
    Refused(String),
}

/// Two thirds of its life have passed.
fn is_due(pair: &CertPair) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    pair.info().needs_renewal(i64::try_from(now).unwrap_or(i64::MAX))
}

/// A pair on disk: `<dir>/<name>.crt` and `.key`.
struct Files {
    dir: PathBuf,
    name: &'static str,
}

impl Files {
    fn new(dir: &Path, name: &'static str) -> Self {
        Self { dir: dir.to_owned(), name }
    }

    fn paths(&self) -> (PathBuf, PathBuf) {
        (self.dir.join(format!("{}.crt", self.name)), self.dir.join(format!("{}.key", self.name)))
    }

    /// The pair, if there is a good one.
    fn read(&self) -> Option<(PemPair, CertPair)> {
        let (cert, key) = self.paths();
        let pem = PemPair {
            cert_pem: std::fs::read_to_string(cert).ok()?,
            key_pem: std::fs::read_to_string(key).ok()?,
        };
        let pair = pem
            .cert_pair(self.name)
            .inspect_err(|error| tracing::warn!(%error, "a stored certificate is not used"))
            .ok()?;
        Some((pem, pair))
    }

    /// A new key, certified and stored.
    async fn sign(
        &self,
        control: &ControlTransport,
        profile: &Profile,
        purpose: Purpose,
    ) -> Result<(PemPair, CertPair), CertificateError> {
        let request = SigningRequest::create(profile)?;
        let cert_pem = sign(control, &request.request_pem, purpose)
            .await
            .map_err(|status| CertificateError::Refused(status.message))?;
        let pem = PemPair { cert_pem, key_pem: request.key_pem };
        let pair = pem.cert_pair(self.name)?;
        self.write(&pem)?;
        Ok((pem, pair))
    }

    fn write(&self, pem: &PemPair) -> Result<(), CertificateError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| CertificateError::File { path, source }
        };
        let (cert, key) = self.paths();
        atomic_file::private_dir(&self.dir).map_err(failed(&self.dir))?;
        atomic_file::write(&key, pem.key_pem.as_bytes(), PRIVATE).map_err(failed(&key))?;
        atomic_file::write(&cert, pem.cert_pem.as_bytes(), PUBLIC).map_err(failed(&cert))
    }
}
