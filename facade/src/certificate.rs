//! The serving certificate of a facade in a process of its own: signed by the control service, kept on disk, renewed.
//!
//! Without a control service at the first start it serves with one that it makes itself, until it gets another.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portico_kit::atomic_file::{self, PRIVATE, PUBLIC};
use portico_kit::pki::{Authority, PkiError, Profile, SigningRequest};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{CertPair, TlsError};
use tokio::sync::watch;

use crate::control::sign;
use crate::settings::ServingCertificate;
use crate::transport::ControlTransport;

/// The certificate's name in the folder, as upstream's.
const NAME: &str = "apiserver";
/// What a self-made certificate is valid for; one that is signed replaces it long before.
const SELF_MADE_LIFE: Duration = Duration::from_secs(365 * 86_400);
/// How long a start waits for the control service to sign.
const FIRST_ANSWER: Duration = Duration::from_secs(2);
/// How often it is looked at whether a certificate is due.
const PERIOD: Duration = Duration::from_secs(60);

/// Why there is no certificate to serve with.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A self-made one cannot be made or kept.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// What was signed cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
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

struct Keeper {
    dir: PathBuf,
    profile: Profile,
    control: ControlTransport,
}

/// The certificate, renewed in `tasks` for as long as those live. `names` are what the facade is called besides
/// localhost.
///
/// # Errors
/// [`CertificateError`] when there is none at all.
pub async fn signed_certificate(
    dir: &Path,
    names: &[String],
    control: &ControlTransport,
    tasks: &TaskSet,
) -> Result<ServingCertificate, CertificateError> {
    let local =
        ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let all: Vec<String> = local.iter().map(ToString::to_string).chain(names.iter().cloned()).collect();
    let profile = Profile::server("portico-facade", &all, SELF_MADE_LIFE);
    let keeper = Keeper { dir: dir.to_owned(), profile, control: control.clone() };
    let pair = keeper.first().await?;
    let (certificate, receiver) = watch::channel(pair);
    tasks.spawn_until_cancelled("serving-certificate", async move { keeper.keep(&certificate).await });
    Ok(ServingCertificate::Given(receiver))
}

impl Keeper {
    /// The one on disk while it is good, else a signed one, else one of our own making.
    async fn first(&self) -> Result<CertPair, CertificateError> {
        let stored = self.stored();
        if let Some(pair) = stored.as_ref().filter(|p| !self.is_due(p)) {
            return Ok(pair.clone());
        }
        match tokio::time::timeout(FIRST_ANSWER, self.signed()).await {
            Ok(Ok(pair)) => return Ok(pair),
            Ok(Err(error)) => tracing::warn!(%error, "serving with another certificate for now"),
            Err(_) => tracing::warn!(
                "the control service does not answer; serving with another certificate for now"
            ),
        }
        if let Some(pair) = stored {
            return Ok(pair);
        }
        let authority = Authority::load_or_create(&self.dir, "facade-ca", "portico-facade-ca")?;
        Ok(authority.issue(&self.profile)?.cert_pair(NAME)?)
    }

    async fn keep(&self, certificate: &watch::Sender<CertPair>) {
        loop {
            tokio::time::sleep(PERIOD).await;
            let due = self.is_due(&certificate.borrow());
            if !due {
                continue;
            }
            match self.signed().await {
                Ok(pair) => {
                    certificate.send_replace(pair);
                }
                Err(error) => tracing::warn!(%error, "the serving certificate is due"),
            }
        }
    }

    /// Due: two thirds of its life have passed, or it is our own making.
    fn is_due(&self, pair: &CertPair) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        pair.info().issuer == "portico-facade-ca"
            || pair.info().needs_renewal(i64::try_from(now).unwrap_or(i64::MAX))
    }

    async fn signed(&self) -> Result<CertPair, CertificateError> {
        let request = SigningRequest::create(&self.profile)?;
        let cert_pem = sign::serving(&self.control, &request.request_pem)
            .await
            .map_err(|status| CertificateError::Refused(status.message))?;
        let pair = CertPair::from_pem(NAME, cert_pem.as_bytes(), request.key_pem.as_bytes())?;
        self.store(&cert_pem, &request.key_pem)?;
        Ok(pair)
    }

    fn files(&self) -> (PathBuf, PathBuf) {
        (self.dir.join(format!("{NAME}.crt")), self.dir.join(format!("{NAME}.key")))
    }

    fn stored(&self) -> Option<CertPair> {
        let (cert, key) = self.files();
        let (cert, key) = (std::fs::read(cert).ok()?, std::fs::read(key).ok()?);
        CertPair::from_pem(NAME, &cert, &key)
            .inspect_err(|error| tracing::warn!(%error, "the stored serving certificate is not used"))
            .ok()
    }

    fn store(&self, cert_pem: &str, key_pem: &str) -> Result<(), CertificateError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| CertificateError::File { path, source }
        };
        let (cert, key) = self.files();
        atomic_file::private_dir(&self.dir).map_err(failed(&self.dir))?;
        atomic_file::write(&key, key_pem.as_bytes(), PRIVATE).map_err(failed(&key))?;
        atomic_file::write(&cert, cert_pem.as_bytes(), PUBLIC).map_err(failed(&cert))
    }
}
