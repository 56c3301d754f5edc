//! Serving certificate. If no control service is reachable at the first start, the facade issues a temporary certificate and
//! uses it until the control service signs one.

use std::path::Path;
use std::time::Duration;

use portico_kit::pki::{Authority, CertProfile};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::CertPair;
use tokio::sync::watch;

use super::{CHECK_INTERVAL, CertificateError, CertificateFiles, TEMPORARY_CA, is_foreign, needs_renewal};
use crate::control::sign::Purpose;
use crate::control_services::ControlServices;
use crate::settings::ServingCertificate;

/// Validity of a temporary certificate; a signed one replaces it long before.
const TEMPORARY_VALIDITY: Duration = Duration::from_secs(365 * 86_400);
/// Interval between requests for a signed certificate while a temporary one is in use.
const TEMPORARY_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout for the first signature at a start.
const FIRST_SIGN_TIMEOUT: Duration = Duration::from_secs(2);

struct Renewer {
    files: CertificateFiles,
    profile: CertProfile,
    control: ControlServices,
}

/// Returns the serving certificate, renewed in `tasks`. `names` are names and addresses of the facade other than localhost.
///
/// # Errors
/// [`CertificateError`] if no certificate can be obtained or issued.
pub async fn serving_certificate(
    dir: &Path,
    names: &[String],
    control: &ControlServices,
    tasks: &TaskSet,
) -> Result<ServingCertificate, CertificateError> {
    let local =
        ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let all: Vec<String> = local.iter().map(ToString::to_string).chain(names.iter().cloned()).collect();
    let profile = CertProfile::server("portico-facade", &all, TEMPORARY_VALIDITY);
    let keeper =
        Renewer { files: CertificateFiles::new(dir, "apiserver"), profile, control: control.clone() };
    let (certificate, receiver) = watch::channel(keeper.initial_certificate().await?);
    tasks.spawn_until_cancelled("serving-certificate", async move { keeper.run(&certificate).await });
    Ok(ServingCertificate::Channel(receiver))
}

impl Renewer {
    /// Returns the stored certificate if it is foreign or not due, else a signed one, else a temporary one.
    async fn initial_certificate(&self) -> Result<CertPair, CertificateError> {
        let stored = self.files.read()?.map(|(_, pair)| pair);
        if let Some(pair) = stored.as_ref().filter(|p| is_foreign(p.info()) || !needs_renewal(p)) {
            return Ok(pair.clone());
        }
        match tokio::time::timeout(FIRST_SIGN_TIMEOUT, self.request_certificate()).await {
            Ok(Ok(pair)) => return Ok(pair),
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot obtain a serving certificate, using another one")
            }
            Err(_) => {
                tracing::warn!(
                    error = "the control service does not respond",
                    "cannot obtain a serving certificate, using another one"
                );
            }
        }
        if let Some(pair) = stored {
            return Ok(pair);
        }
        let authority = Authority::load_or_create(&self.files.dir, "facade-ca", TEMPORARY_CA)?;
        Ok(authority.issue(&self.profile)?.cert_pair("apiserver")?)
    }

    async fn run(&self, certificate: &watch::Sender<CertPair>) {
        loop {
            // Clients that trust the CA of the control service refuse a temporary certificate: replace it as soon as possible.
            let is_temporary = certificate.borrow().info().issuer == TEMPORARY_CA;
            tokio::time::sleep(if is_temporary { TEMPORARY_RETRY_INTERVAL } else { CHECK_INTERVAL }).await;
            let is_current = is_foreign(certificate.borrow().info())
                || !is_temporary && !needs_renewal(&certificate.borrow());
            if is_current {
                continue;
            }
            match self.request_certificate().await {
                Ok(pair) => {
                    certificate.send_replace(pair);
                }
                Err(error) => tracing::debug!(%error, "cannot renew the serving certificate, retrying"),
            }
        }
    }

    async fn request_certificate(&self) -> Result<CertPair, CertificateError> {
        let signed = self.files.sign(&self.control, &self.profile, Purpose::Serving).await?;
        Ok(signed.1)
    }
}
