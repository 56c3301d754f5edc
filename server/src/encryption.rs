//! `--encryption-provider-config`: reads, checks and reloads the configuration of encryption at rest.
//!
//! The file becomes the rules of a [`Seal`], and key services are called over their sockets. The store depends on neither.

mod configuration;
mod error;
mod kms;
mod providers;
mod reload;
mod validation;

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_kit::health::{Check, Health, HealthEndpoint, HealthError};
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{Envelope, Seal, SealMetrics};

use crate::reload_metrics::{ENCRYPTION, ReloadMetrics};
pub use error::EncryptionError;
use providers::BuiltConfiguration;
pub(crate) use providers::SHARED_FILES;

/// Name of the health check of all key services.
const CHECK: &str = "kms-providers";

/// Flags of encryption at rest.
#[derive(Clone, Debug, Default)]
pub struct EncryptionSettings {
    /// `--encryption-provider-config`
    pub config: Option<PathBuf>,
    /// `--encryption-provider-config-automatic-reload`
    pub automatic_reload: bool,
}

impl EncryptionSettings {
    /// Reads and checks the file, if one is given. Key services are not called.
    ///
    /// # Errors
    /// [`EncryptionError`] with upstream's message.
    pub fn check(&self) -> Result<(), EncryptionError> {
        let Some(path) = &self.config else { return Ok(()) };
        let read = configuration::read(path, self.automatic_reload)?;
        providers::build(&read.configuration, &unexported_metrics(), &Registry::new()).map(drop)
    }
}

/// Returns the seal that opens the values of a data folder without a server.
///
/// # Errors
/// [`EncryptionError`].
pub(crate) fn load_seal(path: &std::path::Path) -> Result<Arc<Seal>, EncryptionError> {
    let (read, metrics) = (configuration::read(path, false)?, unexported_metrics());
    let BuiltConfiguration { rules, .. } = providers::build(&read.configuration, &metrics, &Registry::new())?;
    Ok(Seal::new(rules, metrics))
}

/// Returns the seal for a process that serves no requests. Key services are called once, and polled in `tasks`.
///
/// # Errors
/// [`EncryptionError`].
pub(crate) async fn load_polled_seal(
    path: &std::path::Path,
    tasks: &TaskSet,
) -> Result<Arc<Seal>, EncryptionError> {
    let (read, metrics) = (configuration::read(path, false)?, unexported_metrics());
    let BuiltConfiguration { rules, services } =
        providers::build(&read.configuration, &metrics, &Registry::new())?;
    for service in &services {
        if let Err(error) = service.probe().await {
            tracing::warn!(error, "key service is not healthy");
        }
        providers::poll(service, tasks);
    }
    Ok(Seal::new(rules, metrics))
}

/// Creates metrics that are not exported.
fn unexported_metrics() -> SealMetrics {
    SealMetrics::new(&Registry::new(), "")
}

/// Encryption at rest of a running server.
pub(crate) struct Encryption {
    seal: Arc<Seal>,
    services: Arc<ArcSwap<Vec<Arc<Envelope>>>>,
    /// Reloader of the file; `None` if it is not reloaded.
    reload: Option<reload::Reloader>,
}

impl Encryption {
    /// Reads the file and calls each key service once. A service that does not respond is called again later and does not
    /// prevent the start.
    pub(crate) async fn start(
        settings: &EncryptionSettings,
        server_id: &str,
        registry: &Registry,
        tasks: &TaskSet,
    ) -> Result<Self, EncryptionError> {
        let Some(path) = settings.config.clone() else {
            return Ok(Self { seal: Seal::none(), services: Arc::default(), reload: None });
        };
        let read = configuration::read(&path, settings.automatic_reload)?;
        let metrics = SealMetrics::new(registry, server_id);
        let BuiltConfiguration { rules, services } =
            providers::build(&read.configuration, &metrics, registry)?;
        for service in &services {
            if let Err(error) = service.probe().await {
                tracing::warn!(error, "key service is not healthy");
            }
            providers::poll(service, tasks);
        }
        let (seal, services) = (Seal::new(rules, metrics.clone()), Arc::new(ArcSwap::from_pointee(services)));
        let reloads = ReloadMetrics::new(registry, &ENCRYPTION, server_id);
        reloads.record_initial(read.hash.clone());
        let reload = settings.automatic_reload.then(|| reload::Reloader {
            path,
            hash: read.hash,
            seal: Arc::clone(&seal),
            services: Arc::clone(&services),
            metrics,
            registry: registry.clone(),
            reloads,
        });
        Ok(Self { seal, services, reload })
    }

    pub(crate) fn seal(&self) -> Arc<Seal> {
        Arc::clone(&self.seal)
    }

    /// Adds the health check of the key services under upstream's conditions; not to /livez.
    pub(crate) fn add_check(&self, health: &Health) -> Result<(), HealthError> {
        if self.reload.is_none() && self.services.load().is_empty() {
            return Ok(());
        }
        let services = Arc::clone(&self.services);
        let check = Check::new(CHECK, move || check_services(&services.load()));
        health.add(&[HealthEndpoint::Healthz, HealthEndpoint::Readyz], check)
    }

    /// Reloads the file when it changes.
    pub(crate) fn watch(self, tasks: &TaskSet) {
        if let Some(reload) = self.reload {
            tasks.spawn_until_cancelled("encryption-config", reload.run(tasks.clone()));
        }
    }
}

/// Returns the errors of the last calls of the key services.
fn check_services(services: &[Arc<Envelope>]) -> Result<(), String> {
    let failed = |(index, service): (usize, &Arc<Envelope>)| {
        service.health().err().map(|error| format!("kms-provider-{index}: {error}"))
    };
    let errors: Vec<String> = services.iter().enumerate().filter_map(failed).collect();
    if errors.is_empty() { Ok(()) } else { Err(portico_machinery::aggregate(errors)) }
}
