//! The folder of manifests: applied once the server works by itself, and a check of readiness of its own.

use std::sync::Arc;
use std::time::Duration;

use portico_kit::backoff::{Backoff, Policy};
use portico_kit::health::{Check, Endpoint, Health, HealthQuery};
use portico_kit::tasks::TaskSet;
use portico_manifests::Manifests;
use portico_registry::Registry;

use super::aggregated::FromFolder;
use super::error::StartError;
use super::process::Process;
use crate::own_requests::OwnRequests;
use crate::settings::ServerSettings;

/// The check of readiness.
const NAME: &str = "manifests";
/// How often it is looked whether the server works.
const PERIOD: Policy = Policy::new(Duration::from_millis(1), Duration::from_secs(1), 1.3, 0.0);

/// What follows the folder, where there is one; its check is added. Nothing is applied yet.
pub(super) fn join(
    settings: &ServerSettings,
    registry: &Registry,
    health: &Health,
    process: &Process,
) -> Result<Option<Manifests>, StartError> {
    let Some(folder) = settings.manifests.clone() else { return Ok(None) };
    let requests = OwnRequests::new(registry.clone(), process.auditor.clone());
    let manifests = Manifests::new(folder, registry.clone(), Arc::new(requests), &process.metrics);
    let (state, warned) = (manifests.state(), manifests.state());
    let check = Check::new(NAME, move || state.check()).with_warning(move || warned.warning());
    health.add(&[Endpoint::Readyz], check)?;
    Ok(Some(manifests))
}

/// Applies and follows it, where there is one: as soon as all other checks have passed, so that system namespaces and roles are
/// there.
pub(super) fn start(manifests: Option<Manifests>, others: FromFolder, health: Health, tasks: &TaskSet) {
    let Some(manifests) = manifests else { return };
    tasks.spawn_until_cancelled("manifests", async move {
        let rest = HealthQuery { exclude: vec![NAME.to_owned()], ..HealthQuery::default() };
        let mut pause = Backoff::new(PERIOD);
        while !health.run(Endpoint::Readyz, &rest).await.passed() {
            tokio::time::sleep(pause.next_wait()).await;
        }
        manifests.run(Arc::new(others)).await;
    });
}
