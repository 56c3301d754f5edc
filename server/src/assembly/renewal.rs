//! Certificates of the internal CA, which are renewed when two thirds of their lifetime have passed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use portico_kit::pki::{CertInfo, PkiError};
use portico_kit::tasks::{TaskSet, blocking};
use portico_kit::tls::{CertPair, ServerTls};
use tokio::sync::watch;

use super::error::StartError;
use crate::pki::Pki;
use crate::settings::ServerSettings;

/// Interval between checks of the certificates.
const CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// Certificates of the internal CA, with their renewals. Cheap to clone.
#[derive(Clone)]
pub(super) struct RenewedPki {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
    control_names: Vec<String>,
    facade_names: Vec<String>,
    current: ArcSwap<Pki>,
    control: ServerTls,
    facade: watch::Sender<CertPair>,
}

impl RenewedPki {
    /// Starts with the loaded certificates.
    pub(super) fn new(
        settings: &ServerSettings,
        pki: Arc<Pki>,
        control: ServerTls,
    ) -> Result<Self, StartError> {
        let facade_names: Vec<String> =
            settings.external_hostname.iter().cloned().chain([settings.bind_address.to_string()]).collect();
        let facade = pki.facade_serving(&settings.cert_dir, &facade_names)?.cert_pair("apiserver.crt")?;
        let inner = Inner {
            dir: settings.cert_dir.clone(),
            control_names: names(settings),
            facade_names,
            current: ArcSwap::new(pki),
            control,
            facade: watch::Sender::new(facade),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the current certificates.
    pub(super) fn current(&self) -> Arc<Pki> {
        self.inner.current.load_full()
    }

    /// Returns the facade's serving certificate, with its renewals.
    pub(super) fn facade_serving(&self) -> watch::Receiver<CertPair> {
        self.inner.facade.subscribe()
    }

    /// Returns the certificates that this control service uses, with their purposes.
    pub(super) fn certificates(&self) -> Vec<(&'static str, CertInfo)> {
        let pki = self.current();
        let all = [("serving gRPC", &*pki.control.cert_pem), ("internal CA", pki.authority.cert_pem())];
        let front_proxy = pki.front_proxy.as_ref().map(|identity| {
            [
                ("front-proxy CA", identity.authority.cert_pem()),
                ("client of backends", &*identity.client.cert_pem),
            ]
        });
        let all = all.into_iter().chain(front_proxy.into_iter().flatten());
        all.filter_map(|(usage, pem)| Some((usage, CertInfo::from_pem(usage, pem).ok()?))).collect()
    }

    /// Checks the certificates until `tasks` are canceled. Kubeconfigs on disk are written at startup; their client certificates
    /// last longer than a process should run, and the next start renews them.
    pub(super) fn run(&self, tasks: &TaskSet) {
        let this = self.clone();
        tasks.spawn_until_cancelled("certificate-renewal", async move {
            loop {
                tokio::time::sleep(CHECK_INTERVAL).await;
                let renewing = this.clone();
                match blocking(move || renewing.renew()).await {
                    Some(Ok(())) => {}
                    Some(Err(error)) => tracing::error!(%error, "cannot renew certificates, retrying"),
                    None => return,
                }
            }
        });
    }

    fn renew(&self) -> Result<(), PkiError> {
        let inner = &*self.inner;
        // Users of the client certificate for backends reload its files.
        let pki = self.current().renew(&inner.dir, &inner.control_names)?;
        inner.control.replace_default(pki.control.cert_pair("control.crt")?);
        let facade = pki.facade_serving(&inner.dir, &inner.facade_names)?.cert_pair("apiserver.crt")?;
        inner.facade.send_if_modified(|current| {
            let is_changed = current.info().fingerprint != facade.info().fingerprint;
            if is_changed {
                *current = facade;
            }
            is_changed
        });
        inner.current.store(Arc::new(pki));
        Ok(())
    }
}

/// Returns the names of the control service, except for localhost.
pub(super) fn names(settings: &ServerSettings) -> Vec<String> {
    let external = settings.control_external_address.as_ref();
    let host =
        external.and_then(|a| a.rsplit_once(':')).map(|(host, _)| host.trim_matches(['[', ']']).to_owned());
    let bound = settings.control_address.ip().to_string();
    host.into_iter().chain(settings.external_hostname.clone()).chain([bound]).collect()
}
