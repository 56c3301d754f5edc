//! Client certificate for calls to the control service: initially that of the kubeconfig, later a renewed one from disk.

use std::path::Path;
use std::time::Duration;

use portico_kit::pki::{CertProfile, PemPair};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::CertPair;
use portico_proto::client::{Connection, Credentials};

use super::{CHECK_INTERVAL, CertificateError, CertificateFiles, needs_renewal};
use crate::control::sign::Purpose;
use crate::control_services::ControlServices;

/// Uses the newest certificate for calls from now on and renews it in `tasks`. Connections with a token, or without
/// credentials, are not changed. All control services of a store trust the same certificates.
///
/// # Errors
/// [`CertificateError`] if the stored certificate cannot be used to connect.
pub fn maintain_client_certificate(
    dir: &Path,
    connections: &[Connection],
    control: &ControlServices,
    tasks: &TaskSet,
) -> Result<(), CertificateError> {
    let mut newest: Option<CertPair> = None;
    for connection in connections {
        if let Credentials::Certificate { cert_pem, key_pem } = &connection.credentials {
            let pair = CertPair::from_pem("--control-kubeconfig", cert_pem, key_pem)?;
            let is_newer = newest.as_ref().is_none_or(|g| pair.info().not_after > g.info().not_after);
            newest = if is_newer { Some(pair) } else { newest };
        }
    }
    let Some(newest) = newest else { return Ok(()) };
    let files = CertificateFiles::new(dir, "control-client");
    let stored = files.read()?.filter(|(_, pair)| pair.info().not_after > newest.info().not_after);
    let renewer = Renewer { files, connections: connections.to_vec(), control: control.clone() };
    let current = match stored {
        None => newest,
        Some((pem, pair)) => {
            renewer.reconnect_with(&pem)?;
            pair
        }
    };
    tasks.spawn_until_cancelled("control-client-certificate", renewer.run(current));
    Ok(())
}

struct Renewer {
    files: CertificateFiles,
    connections: Vec<Connection>,
    control: ControlServices,
}

impl Renewer {
    async fn run(self, mut current: CertPair) {
        loop {
            if needs_renewal(&current) {
                match self.renew(&current).await {
                    Ok(pair) => current = pair,
                    Err(error) => {
                        tracing::warn!(%error, "cannot renew the client certificate of the facade, retrying");
                    }
                }
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    async fn renew(&self, current: &CertPair) -> Result<CertPair, CertificateError> {
        // The control service overrides the name with that of the caller, and sets its own validity.
        let profile = CertProfile::client(&current.info().common_name, &[], Duration::from_secs(86_400));
        let (pem, pair) = self.files.sign(&self.control, &profile, Purpose::Client).await?;
        self.reconnect_with(&pem)?;
        tracing::info!(not_after = pair.info().not_after_text(), "client certificate of the facade renewed");
        Ok(pair)
    }

    fn reconnect_with(&self, pem: &PemPair) -> Result<(), CertificateError> {
        let connections: Vec<_> =
            self.connections.iter().map(|connection| with_certificate(connection, pem)).collect();
        Ok(self.control.reconnect(&connections)?)
    }
}

fn with_certificate(connection: &Connection, pem: &PemPair) -> Connection {
    if !matches!(connection.credentials, Credentials::Certificate { .. }) {
        return connection.clone();
    }
    let (cert_pem, key_pem) = (pem.cert_pem.clone().into_bytes(), pem.key_pem.clone().into_bytes());
    connection.clone().with_credentials(Credentials::Certificate { cert_pem, key_pem })
}
