//! Health checks of a store that serves with restrictions.
//!
//! A full store accepts only deletions, so the control service is not ready. Unreadable objects do not affect the others, so only
//! `/healthz` reports them.

use std::sync::Arc;

use portico_kit::health::{Check, Endpoint, Health, HealthError};
use portico_proto::convert;
use portico_store::{Incomplete, Store};

/// Maximum number of objects that one failure names.
const MAX_NAMED: usize = 10;

/// Adds both health checks.
pub(super) fn add_checks(health: &Health, store: &Arc<dyn Store>) -> Result<(), HealthError> {
    let full = Arc::clone(store);
    health.add(&[Endpoint::Readyz], Check::new(convert::Check::STORAGE_SPACE, move || space(&*full)))?;
    let readable = Arc::clone(store);
    health.add(&[Endpoint::Healthz], Check::new("storage-readable", move || objects(&*readable)))
}

fn space(store: &dyn Store) -> Result<(), String> {
    store.condition().full.map_or(Ok(()), |why| Err(format!("accepting only deletions: {why}")))
}

fn objects(store: &dyn Store) -> Result<(), String> {
    let condition = store.condition();
    let mut wrong = Vec::new();
    if !condition.unreadable.is_empty() {
        let named = condition.unreadable.iter().take(MAX_NAMED).map(|object| object.key().to_string());
        let (count, named) = (condition.unreadable.len(), named.collect::<Vec<_>>().join(", "));
        wrong.push(format!("{count} stored objects cannot be read, including {named}"));
    }
    if !condition.unreadable_resources.is_empty() {
        let named = condition.unreadable_resources.join(", ");
        wrong.push(format!(
            "the names of stored resources cannot be read, their objects are not served: {named}"
        ));
    }
    let incomplete = match condition.incomplete {
        Incomplete::None | Incomplete::Unknown => None,
        Incomplete::Resources(resources) => {
            Some(resources.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        Incomplete::Any => Some("any resource".to_owned()),
    };
    if let Some(named) = incomplete {
        wrong.push(format!("stored states are missing, lists may be incomplete: {named}"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}
