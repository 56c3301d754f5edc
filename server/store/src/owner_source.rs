//! Owners of a state, for copies: from its value, or from the index if the value is sealed and the state is the current
//! state of the object.

use std::collections::HashMap;

use crate::codec;
use crate::copy::StoredState;
use crate::index::{Indexer, MetadataIndexer};
use crate::key::Key;
use crate::seal::Seal;

/// Source of the owners of a state.
pub(crate) enum OwnerSource {
    /// Owners from the value.
    Known(Vec<String>),
    /// The index contains the owners.
    Indexed,
    /// No source: the value is sealed, and the index describes a later state.
    Unknown,
}

/// Returns the owners in a value. A damaged value of a superseded state counts as having no owners.
pub(crate) async fn owner_source(seal: &Seal, state: &StoredState, is_current: bool) -> OwnerSource {
    if state.deleted {
        return OwnerSource::Known(Vec::new());
    }
    let Ok(stored) = codec::decode(&state.value) else {
        return if is_current { OwnerSource::Indexed } else { OwnerSource::Known(Vec::new()) };
    };
    let Ok(opened) = seal.open(&state.key, stored).await else {
        return if is_current { OwnerSource::Indexed } else { OwnerSource::Unknown };
    };
    match MetadataIndexer.index(state.key.resource(), &opened.json) {
        Ok(indexed) => OwnerSource::Known(indexed.owners.iter().map(|owner| owner.to_string()).collect()),
        Err(_) if is_current => OwnerSource::Indexed,
        Err(_) => OwnerSource::Known(Vec::new()),
    }
}

/// Adds the owners from the index to states.
pub(crate) fn join_indexed(
    states: Vec<(StoredState, OwnerSource)>,
    indexed: &[(Key, String)],
) -> Vec<StoredState> {
    let mut by_key: HashMap<&Key, Vec<String>> = HashMap::new();
    indexed.iter().for_each(|(key, owner)| by_key.entry(key).or_default().push(owner.clone()));
    let join = |(state, owners): (StoredState, OwnerSource)| {
        let owners = match owners {
            OwnerSource::Known(owners) => Some(owners),
            OwnerSource::Indexed => Some(by_key.get(&state.key).cloned().unwrap_or_default()),
            OwnerSource::Unknown => None,
        };
        StoredState { owners, ..state }
    };
    states.into_iter().map(join).collect()
}
