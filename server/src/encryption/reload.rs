//! Reloads a changed file: it replaces the previous one as a whole if it is valid and its key services are healthy.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{Envelope, Seal, SealMetrics};

use super::configuration;
use super::error::EncryptionError;
use super::providers::{self, BuiltConfiguration};
use crate::reload_metrics::ReloadMetrics;

/// Interval between checks of the file.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Time for new key services to become healthy.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between probes of an unhealthy key service during a reload.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Reloader of the configuration file.
pub(super) struct Reloader {
    pub(super) path: PathBuf,
    /// Hash of the current configuration.
    pub(super) hash: String,
    pub(super) seal: Arc<Seal>,
    pub(super) services: Arc<ArcSwap<Vec<Arc<Envelope>>>>,
    pub(super) metrics: SealMetrics,
    pub(super) registry: Registry,
    pub(super) reloads: ReloadMetrics,
}

impl Reloader {
    /// Checks the file at an interval, without end.
    pub(super) async fn run(mut self, tasks: TaskSet) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            match self.reload_if_changed(&tasks).await {
                Ok(false) => {}
                Ok(true) => {
                    self.reloads.record_success(self.hash.clone());
                    tracing::info!(path = %self.path.display(), "encryption configuration reloaded");
                }
                Err(error) => {
                    self.reloads.record_failure();
                    tracing::error!(
                        path = %self.path.display(),
                        %error,
                        "cannot reload the encryption configuration, using the previous one"
                    );
                }
            }
        }
    }

    /// Reloads the file if it has changed. Returns true in this case.
    async fn reload_if_changed(&mut self, tasks: &TaskSet) -> Result<bool, EncryptionError> {
        if configuration::hash(&self.path)? == self.hash {
            return Ok(false);
        }
        let read = configuration::read(&self.path, true)?;
        let BuiltConfiguration { rules, services } =
            providers::build(&read.configuration, &self.metrics, &self.registry)?;
        wait_healthy(&services).await?;
        services.iter().for_each(|service| providers::poll(service, tasks));
        self.seal.replace(rules);
        self.services.store(Arc::new(services));
        self.hash = read.hash;
        Ok(true)
    }
}

/// Probes new key services until all are healthy.
async fn wait_healthy(services: &[Arc<Envelope>]) -> Result<(), EncryptionError> {
    let deadline = Instant::now() + HEALTH_TIMEOUT;
    for service in services {
        while let Err(error) = service.probe().await {
            if Instant::now() > deadline {
                return Err(EncryptionError::Unhealthy(error));
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
    Ok(())
}
