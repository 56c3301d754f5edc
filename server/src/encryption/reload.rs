//! Takes a changed file up: when it is read well and its key services are healthy, all at once; else what was goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{Envelope, Seal, SealMetrics};

use super::configuration;
use super::error::EncryptionError;
use super::providers::{self, Built};
use crate::reload_metrics::ReloadMetrics;

/// How often the file is looked at.
const PERIOD: Duration = Duration::from_secs(5);
/// How long new key services have to become healthy.
const PATIENCE: Duration = Duration::from_secs(10);
/// How soon one that is not is asked again.
const RETRY: Duration = Duration::from_millis(100);

/// See the module.
pub(super) struct Reload {
    pub(super) path: PathBuf,
    /// Of the file in force.
    pub(super) hash: String,
    pub(super) seal: Arc<Seal>,
    pub(super) services: Arc<ArcSwap<Vec<Arc<Envelope>>>>,
    pub(super) metrics: SealMetrics,
    pub(super) registry: Registry,
    pub(super) reloads: ReloadMetrics,
}

impl Reload {
    /// Looks at the file for ever.
    pub(super) async fn run(mut self, tasks: TaskSet) {
        loop {
            tokio::time::sleep(PERIOD).await;
            match self.look(&tasks).await {
                Ok(false) => {}
                Ok(true) => {
                    self.reloads.succeeded(self.hash.clone());
                    tracing::info!(path = %self.path.display(), "encryption configuration reloaded");
                }
                Err(error) => {
                    self.reloads.failed();
                    tracing::error!(
                        path = %self.path.display(),
                        %error,
                        "cannot reload the encryption configuration, using the previous one"
                    );
                }
            }
        }
    }

    /// Whether there was something new.
    async fn look(&mut self, tasks: &TaskSet) -> Result<bool, EncryptionError> {
        if configuration::hash(&self.path)? == self.hash {
            return Ok(false);
        }
        let read = configuration::read(&self.path, true)?;
        let Built { rules, services } = providers::build(&read.configuration, &self.metrics, &self.registry)?;
        healthy(&services).await?;
        services.iter().for_each(|service| providers::poll(service, tasks));
        self.seal.replace(rules);
        self.services.store(Arc::new(services));
        self.hash = read.hash;
        Ok(true)
    }
}

/// Asks new key services until all are healthy.
async fn healthy(services: &[Arc<Envelope>]) -> Result<(), EncryptionError> {
    let until = Instant::now() + PATIENCE;
    for service in services {
        while let Err(error) = service.probe().await {
            if Instant::now() > until {
                return Err(EncryptionError::Unhealthy(error));
            }
            tokio::time::sleep(RETRY).await;
        }
    }
    Ok(())
}
