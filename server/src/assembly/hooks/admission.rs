//! Health check of admission rules: fails while a rule cannot be read and no earlier state of it is in force.

use std::sync::Arc;
use std::time::Duration;

use portico_admission::AdmissionChain;
use portico_kit::health::{Check, Health, HealthEndpoint, HealthError};
use portico_proto::convert;
use portico_registry::Registry;

/// Timeout for reading rules that are not in memory yet.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Adds the health check.
pub(super) fn add_check(
    health: &Health,
    registry: &Registry,
    chain: &Arc<AdmissionChain>,
) -> Result<(), HealthError> {
    let (registry, chain) = (registry.clone(), Arc::clone(chain));
    let readable = move || {
        let (registry, chain) = (registry.clone(), Arc::clone(&chain));
        async move {
            let checked = tokio::time::timeout(READ_TIMEOUT, chain.check_rules(registry.objects())).await;
            checked.unwrap_or_else(|_| Err("request to the storage timed out".to_owned()))
        }
    };
    health.add(&[HealthEndpoint::Readyz], Check::new_async(convert::Check::ADMISSION_RULES, readable))
}
