//! Past states of an object, from etcd's history.

use std::sync::Arc;

use crate::archive::{PastQuery, PastState, PastStates};
use crate::error::StoreError;
use crate::event::EventType;
use crate::key::Key;
use crate::record::Record;
use crate::store::Store;

/// Returns the states of an object by successive exact reads, for a store without an archive. They end with the history, and
/// with the creation of the object: states before a deletion are not found.
pub(super) async fn read_past_states(store: &dyn Store, query: PastQuery) -> Result<PastStates, StoreError> {
    let mut result = PastStates { complete_from: store.compacted(), ..PastStates::default() };
    let newest = store.latest_revision().await?;
    let start = query.before.map_or(newest, |before| before.saturating_sub(1).min(newest));
    let mut next = read_at(store, &query.key, start).await?;
    while let Some(record) = next {
        if result.states.len() == query.limit {
            result.has_more = true;
            break;
        }
        next = match read_at(store, &query.key, record.revision - 1).await {
            Err(StoreError::Compacted { oldest }) => {
                result.complete_from = oldest;
                None
            }
            read => read?,
        };
        let change = if next.is_some() { EventType::Modified } else { EventType::Added };
        result.states.push(PastState { change, state: Ok(record), written_at: None });
    }
    Ok(result)
}

async fn read_at(store: &dyn Store, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
    store.wait_for_revision(revision).await?;
    store.get_at(key, revision).await
}
