//! The certificate to call the control service with: the kubeconfig's at first, its successors from disk.

use std::path::Path;
use std::time::Duration;

use portico_kit::pki::{PemPair, Profile};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::CertPair;
use portico_proto::client::{Connection, Credentials};

use super::{CertificateError, Files, PERIOD, is_due};
use crate::control::sign::Purpose;
use crate::transport::ControlTransport;

/// Calls from now on with the youngest certificate that there is, renewed in `tasks` for as long as those live. A
/// connection with a token, or with none, is left as it is.
///
/// # Errors
/// [`CertificateError`] when the stored certificate cannot be used to connect.
pub fn keep_client_certificate(
    dir: &Path,
    connection: &Connection,
    control: &ControlTransport,
    tasks: &TaskSet,
) -> Result<(), CertificateError> {
    let Credentials::Certificate { cert_pem, key_pem } = &connection.credentials else { return Ok(()) };
    let files = Files::new(dir, "control-client");
    let given = CertPair::from_pem("--control-kubeconfig", cert_pem, key_pem)?;
    let stored = files.read()?.filter(|(_, pair)| pair.info().not_after > given.info().not_after);
    let current = match stored {
        None => given,
        Some((pem, pair)) => {
            control.reconnect(&with(connection, &pem))?;
            pair
        }
    };
    let keeper = Keeper { files, connection: connection.clone(), control: control.clone() };
    tasks.spawn_until_cancelled("control-client-certificate", keeper.keep(current));
    Ok(())
}

struct Keeper {
    files: Files,
    connection: Connection,
    control: ControlTransport,
}

impl Keeper {
    async fn keep(self, mut current: CertPair) {
        loop {
            if is_due(&current) {
                match self.renewed(&current).await {
                    Ok(pair) => current = pair,
                    Err(error) => tracing::warn!(%error, "the certificate for the control service is due"),
                }
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    async fn renewed(&self, current: &CertPair) -> Result<CertPair, CertificateError> {
        // The control service gives it the caller's own name and its own validity, whatever is asked.
        let profile = Profile::client(&current.info().common_name, &[], Duration::from_secs(86_400));
        let (pem, pair) = self.files.sign(&self.control, &profile, Purpose::Client).await?;
        self.control.reconnect(&with(&self.connection, &pem))?;
        tracing::info!(
            until = pair.info().not_after_text(),
            "the certificate for the control service is renewed"
        );
        Ok(pair)
    }
}

fn with(connection: &Connection, pem: &PemPair) -> Connection {
    let (cert_pem, key_pem) = (pem.cert_pem.clone().into_bytes(), pem.key_pem.clone().into_bytes());
    Connection { credentials: Credentials::Certificate { cert_pem, key_pem }, ..connection.clone() }
}
