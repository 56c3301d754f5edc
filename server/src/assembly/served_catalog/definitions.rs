//! Passes definitions of custom resources to the catalog when they change.
//!
//! Changes are passed in batches, so that a group version with many changed definitions is updated once.

use std::collections::BTreeMap;

use futures::StreamExt;
use portico_kit::lifecycle::Signal;
use portico_machinery::Status;
use portico_registry::{Change, Registry, ResourceFeed, StoredObject, definition::resource};
use portico_server_catalog::{Catalog, Definition};
use tokio_util::sync::CancellationToken;

/// Maximum number of changes in a batch.
const BATCH: usize = 512;

/// Error that ends the watch of definitions, which the control service requires.
#[derive(Debug, thiserror::Error)]
pub(super) enum FollowError {
    /// The definitions cannot be read.
    #[error("cannot watch CustomResourceDefinitions: {0}")]
    Follow(#[from] Box<Status>),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

/// Follows definitions until `stop`; signals `ready` once the catalog has the existing ones.
///
/// # Errors
/// [`FollowError`]
pub(super) async fn follow(
    registry: Registry,
    catalog: Catalog,
    ready: Signal,
    stop: CancellationToken,
) -> Result<(), FollowError> {
    let ResourceFeed { initial, changes, .. } = registry.follow(&resource()).await?;
    catalog.replace_definitions(initial.iter().filter_map(|stored| parse_definition(&registry, stored)));
    drop(initial);
    ready.signal();
    let mut batches = changes.ready_chunks(BATCH);
    while let Some(batch) = stop.run_until_cancelled(batches.next()).await {
        apply_batch(&registry, &catalog, batch.ok_or(FollowError::Closed)?);
    }
    Ok(())
}

/// Passes the newest state of each definition in a batch to the catalog.
fn apply_batch(registry: &Registry, catalog: &Catalog, batch: Vec<Change>) {
    let mut newest: BTreeMap<String, Option<StoredObject>> = BTreeMap::new();
    for change in batch {
        match change {
            Change::Put(stored) => newest.insert(stored.name().to_owned(), Some(stored)),
            Change::Deleted(stored) => newest.insert(stored.name().to_owned(), None),
            Change::Relisted(all, _) => {
                newest.clear();
                catalog
                    .replace_definitions(all.iter().filter_map(|stored| parse_definition(registry, stored)));
                continue;
            }
        };
    }
    let read = |(name, stored): (String, Option<StoredObject>)| {
        let definition = stored.as_ref().and_then(|stored| parse_definition(registry, stored));
        (name, definition)
    };
    catalog.set_definitions(newest.into_iter().map(read));
}

/// Parses a definition for the catalog; `None` if it is invalid.
fn parse_definition(registry: &Registry, stored: &StoredObject) -> Option<Definition> {
    let facts = registry.facts(stored).inspect_err(|error| {
        tracing::error!(
            name = stored.name(),
            %error,
            "cannot read a CustomResourceDefinition, omitted from discovery"
        );
    });
    Some(Definition::new(facts.ok()?, stored))
}
