//! Client certificate that the facade presents to backends, issued by the front-proxy CA of the control service. If the control
//! service has no such CA, the facade has no certificate and repeats the request at intervals.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portico_kit::backoff::{Backoff, Policy};
use portico_kit::pki::Profile;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::CertPair;
use tokio::sync::watch;

use super::{CertificateError, Files, PERIOD, is_due, is_foreign};
use crate::control::sign::Purpose;
use crate::control_services::ControlServices;

/// Timeout for the first signature at a start without a stored certificate.
const FIRST_ANSWER: Duration = Duration::from_secs(2);
/// Retry interval if the control service has no front-proxy CA: it gets one only at a restart.
const WITHOUT_AUTHORITY: Duration = Duration::from_secs(3600);
/// Retry policy for other failures.
const RETRY: Policy = Policy::new(Duration::from_secs(1), PERIOD, 2.0, 0.1);

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
    let keeper = Keeper { files: Files::new(dir, "front-proxy-client"), control: control.clone() };
    let (stored, mut is_fresh) = (keeper.files.read()?.map(|(_, pair)| pair), false);
    if stored.as_ref().is_some_and(|pair| is_foreign(pair.info())) {
        return Ok(watch::channel(stored.map(Arc::new)).1);
    }
    let first = match stored {
        Some(pair) => Some(pair),
        None => match tokio::time::timeout(FIRST_ANSWER, keeper.signed()).await {
            Ok(Ok(pair)) => {
                is_fresh = true;
                Some(pair)
            }
            // The renewal repeats the request, and logs a second failure.
            Ok(Err(_)) | Err(_) => None,
        },
    };
    let (shown, receiver) = watch::channel(first.map(Arc::new));
    let keep = async move { keeper.keep(&shown, is_fresh).await };
    tasks.spawn_until_cancelled("front-proxy-certificate", keep);
    Ok(receiver)
}

struct Keeper {
    files: Files,
    control: ControlServices,
}

impl Keeper {
    async fn keep(self, shown: &watch::Sender<Option<Arc<CertPair>>>, mut is_fresh: bool) {
        let (mut retry, mut logged) = (Backoff::new(RETRY), None);
        loop {
            if is_fresh {
                tokio::time::sleep(PERIOD).await;
                is_fresh = shown.borrow().as_deref().is_some_and(|pair| !is_due(pair));
                continue;
            }
            match self.signed().await {
                Ok(pair) => {
                    shown.send_replace(Some(Arc::new(pair)));
                    retry.reset();
                    (is_fresh, logged) = (true, None);
                }
                Err(error) => {
                    let has_no_ca = matches!(error, CertificateError::NoAuthority(_));
                    if has_no_ca {
                        shown.send_replace(None);
                    }
                    let error = error.to_string();
                    if logged.as_ref() != Some(&error) {
                        tracing::info!(error, "cannot obtain a client certificate for backends, retrying");
                    }
                    logged = Some(error);
                    let wait = if has_no_ca { WITHOUT_AUTHORITY } else { retry.next_wait() };
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    async fn signed(&self) -> Result<CertPair, CertificateError> {
        // The control service overrides the name and the validity.
        let profile = Profile::client("front-proxy-client", &[], Duration::from_secs(86_400));
        let pair = self.files.sign(&self.control, &profile, Purpose::FrontProxy).await?.1;
        tracing::info!(
            fingerprint = %pair.info().fingerprint_hex(),
            not_after = %pair.info().not_after_text(),
            "client certificate for backends renewed"
        );
        Ok(pair)
    }
}
