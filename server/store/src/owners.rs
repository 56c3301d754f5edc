//! Whom a stored state names as owners, for copies: read out of its value, or out of the index where the value is sealed and the
//! state is the object's current one.

use std::collections::HashMap;

use crate::codec;
use crate::copy::StoredState;
use crate::index::{Indexer, MetadataIndexer};
use crate::key::Key;
use crate::seal::Seal;

/// Where the owners of a state are to be looked for.
pub(crate) enum Owners {
    /// These are they.
    Known(Vec<String>),
    /// In the index.
    Indexed,
    /// Nowhere: the value is sealed, and the index is about a later state.
    Unknown,
}

/// The owners in a value. One that is damaged, of a state that was superseded, counts as without owners.
pub(crate) async fn of_value(seal: &Seal, state: &StoredState, is_current: bool) -> Owners {
    if state.deleted {
        return Owners::Known(Vec::new());
    }
    let Ok(stored) = codec::decode(&state.value) else {
        return if is_current { Owners::Indexed } else { Owners::Known(Vec::new()) };
    };
    let Ok(opened) = seal.open(&state.key, stored).await else {
        return if is_current { Owners::Indexed } else { Owners::Unknown };
    };
    match MetadataIndexer.index(state.key.resource(), &opened.json) {
        Ok(indexed) => Owners::Known(indexed.owners.iter().map(|owner| owner.to_string()).collect()),
        Err(_) if is_current => Owners::Indexed,
        Err(_) => Owners::Known(Vec::new()),
    }
}

/// Gives states their owners.
pub(crate) fn join(states: Vec<(StoredState, Owners)>, indexed: &[(Key, String)]) -> Vec<StoredState> {
    let mut by_key: HashMap<&Key, Vec<String>> = HashMap::new();
    indexed.iter().for_each(|(key, owner)| by_key.entry(key).or_default().push(owner.clone()));
    let join = |(state, owners): (StoredState, Owners)| {
        let owners = match owners {
            Owners::Known(owners) => Some(owners),
            Owners::Indexed => Some(by_key.get(&state.key).cloned().unwrap_or_default()),
            Owners::Unknown => None,
        };
        StoredState { owners, ..state }
    };
    states.into_iter().map(join).collect()
}
