//! The folder of manifests: applied once all other checks have passed; has its own readiness check.

use std::sync::Arc;
use std::time::Duration;

use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::health::{Check, Health, HealthEndpoint, HealthQuery};
use portico_kit::tasks::TaskSet;
use portico_manifests::Manifests;
use portico_registry::Registry;

use super::aggregated::ManifestsFolderServers;
use super::error::StartError;
use super::process::Process;
use crate::audited_requests::AuditedRequests;
use crate::settings::ServerSettings;

/// Name of the readiness check.
const NAME: &str = "manifests";
/// Interval between evaluations of the other checks.
const POLL_INTERVAL: BackoffPolicy =
    BackoffPolicy::new(Duration::from_millis(1), Duration::from_secs(1), 1.3, 0.0);

/// Creates the follower of the folder and adds its check; `None` without a folder. Objects are applied after [`start`].
pub(super) fn build(
    settings: &ServerSettings,
    registry: &Registry,
    health: &Health,
    process: &Process,
) -> Result<Option<Manifests>, StartError> {
    let Some(folder) = settings.manifests.clone() else { return Ok(None) };
    let requests = AuditedRequests::new(registry.clone(), process.auditor.clone());
    let manifests = Manifests::new(folder, registry.clone(), Arc::new(requests), &process.metrics);
    let (state, warning_state) = (manifests.state(), manifests.state());
    let check = Check::new(NAME, move || state.check()).with_warning(move || warning_state.warning());
    health.add(&[HealthEndpoint::Readyz], check)?;
    Ok(Some(manifests))
}

/// Applies the folder and follows it, if one is configured. Waits until all other checks have passed, so that system namespaces
/// and roles exist.
pub(super) fn start(
    manifests: Option<Manifests>,
    servers: ManifestsFolderServers,
    health: Health,
    tasks: &TaskSet,
) {
    let Some(manifests) = manifests else { return };
    tasks.spawn_until_cancelled("manifests", async move {
        let other_checks = HealthQuery { exclude: vec![NAME.to_owned()], ..HealthQuery::default() };
        let mut pause = Backoff::new(POLL_INTERVAL);
        while !health.run(HealthEndpoint::Readyz, &other_checks).await.has_passed() {
            tokio::time::sleep(pause.next_wait()).await;
        }
        manifests.run(Arc::new(servers)).await;
    });
}
