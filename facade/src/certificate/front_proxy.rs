//! Client certificate that the facade presents to backends, issued by the front-proxy CA of the control service. If the control
//! service has no such CA, the facade has no certificate and repeats the request at intervals.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::pki::CertProfile;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::CertPair;
use tokio::sync::watch;

use super::{CHECK_INTERVAL, CertificateError, CertificateFiles, is_foreign, needs_renewal};
use crate::control::sign::Purpose;
use crate::control_services::ControlServices;

/// Timeout for the first signature at a start without a stored certificate.
const FIRST_SIGN_TIMEOUT: Duration = Duration::from_secs(2);
/// Retry interval if the control service has no front-proxy CA: it gets one only at a restart.
const NO_CA_RETRY_INTERVAL: Duration = Duration::from_secs(3600);
/// Retry policy for other failures.
const RETRY: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), CHECK_INTERVAL, 2.0, 0.1);

/// Returns the current certificate, renewed in `tasks`. The stored certificate is used until a new one arrives, which is
/// requested at once because the CA may have changed. A foreign pair is used as it is.
///
/// # Errors
/// A foreign pair is stored and cannot be used.
pub async fn front_proxy_certificate(
    dir: &Path,
    control: &ControlServices,
    tasks: &TaskSet,
) -> Result<watch::Receiver<Option<Arc<CertPair>>>, CertificateError> {
    let keeper =
        Renewer { files: CertificateFiles::new(dir, "front-proxy-client"), control: control.clone() };
    let (stored, mut is_fresh) = (keeper.files.read()?.map(|(_, pair)| pair), false);
    if stored.as_ref().is_some_and(|pair| is_foreign(pair.info())) {
        return Ok(watch::channel(stored.map(Arc::new)).1);
    }
    let first = match stored {
        Some(pair) => Some(pair),
        None => match tokio::time::timeout(FIRST_SIGN_TIMEOUT, keeper.request_certificate()).await {
            Ok(Ok(pair)) => {
                is_fresh = true;
                Some(pair)
            }
            // The renewal repeats the request, and logs a second failure.
            Ok(Err(_)) | Err(_) => None,
        },
    };
    let (sender, receiver) = watch::channel(first.map(Arc::new));
    let renewal = async move { keeper.run(&sender, is_fresh).await };
    tasks.spawn_until_cancelled("front-proxy-certificate", renewal);
    Ok(receiver)
}

struct Renewer {
    files: CertificateFiles,
    control: ControlServices,
}

impl Renewer {
    async fn run(self, certificate: &watch::Sender<Option<Arc<CertPair>>>, mut is_fresh: bool) {
        let (mut retry, mut logged) = (Backoff::new(RETRY), None);
        loop {
            if is_fresh {
                tokio::time::sleep(CHECK_INTERVAL).await;
                is_fresh = certificate.borrow().as_deref().is_some_and(|pair| !needs_renewal(pair));
                continue;
            }
            match self.request_certificate().await {
                Ok(pair) => {
                    certificate.send_replace(Some(Arc::new(pair)));
                    retry.reset();
                    (is_fresh, logged) = (true, None);
                }
                Err(error) => {
                    let has_no_ca = matches!(error, CertificateError::NoAuthority(_));
                    if has_no_ca {
                        certificate.send_replace(None);
                    }
                    let error = error.to_string();
                    if logged.as_ref() != Some(&error) {
                        tracing::info!(error, "cannot obtain a client certificate for backends, retrying");
                    }
                    logged = Some(error);
                    let wait = if has_no_ca { NO_CA_RETRY_INTERVAL } else { retry.next_wait() };
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    async fn request_certificate(&self) -> Result<CertPair, CertificateError> {
        // The control service overrides the name and the validity.
        let profile = CertProfile::client("front-proxy-client", &[], Duration::from_secs(86_400));
        let pair = self.files.sign(&self.control, &profile, Purpose::FrontProxy).await?.1;
        tracing::info!(
            fingerprint = %pair.info().fingerprint_hex(),
            not_after = %pair.info().not_after_text(),
            "client certificate for backends renewed"
        );
        Ok(pair)
    }
}
