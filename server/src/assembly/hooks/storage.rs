//! Health checks of a store that serves with restrictions.
//!
//! A full store accepts only deletions, so the control service is not ready. Unreadable objects do not affect the others, so only
//! `/healthz` reports them.

use std::sync::Arc;

use portico_kit::health::{Check, Health, HealthEndpoint, HealthError};
use portico_proto::convert;
use portico_store::{MissingStates, Store};

/// Maximum number of objects that one failure names.
const MAX_NAMED: usize = 10;

/// Adds both health checks.
pub(super) fn add_checks(health: &Health, store: &Arc<dyn Store>) -> Result<(), HealthError> {
    let full = Arc::clone(store);
    health
        .add(&[HealthEndpoint::Readyz], Check::new(convert::Check::STORAGE_SPACE, move || space(&*full)))?;
    let readable = Arc::clone(store);
    health.add(&[HealthEndpoint::Healthz], Check::new("storage-readable", move || objects(&*readable)))
}

fn space(store: &dyn Store) -> Result<(), String> {
    store.condition().full.map_or(Ok(()), |message| Err(format!("accepting only deletions: {message}")))
}

fn objects(store: &dyn Store) -> Result<(), String> {
    let condition = store.condition();
    let mut problems = Vec::new();
    if !condition.unreadable.is_empty() {
        let names = condition.unreadable.iter().take(MAX_NAMED).map(|object| object.key().to_string());
        let (count, names) = (condition.unreadable.len(), names.collect::<Vec<_>>().join(", "));
        problems.push(format!("{count} stored objects cannot be read, including {names}"));
    }
    if !condition.unreadable_resources.is_empty() {
        let names = condition.unreadable_resources.join(", ");
        problems.push(format!(
            "the names of stored resources cannot be read, their objects are not served: {names}"
        ));
    }
    let incomplete = match condition.missing_states {
        MissingStates::None | MissingStates::Unknown => None,
        MissingStates::Resources(resources) => {
            Some(resources.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        MissingStates::Any => Some("any resource".to_owned()),
    };
    if let Some(names) = incomplete {
        problems.push(format!("stored states are missing, lists may be incomplete: {names}"));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}
