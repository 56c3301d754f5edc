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
pub(super) async fn by_exact_reads(store: &dyn Store, query: PastQuery) -> Result<PastStates, StoreError> {
    let mut past = PastStates { complete_from: store.compacted(), ..PastStates::default() };
    let newest = store.latest_revision().await?;
    let first = query.before.map_or(newest, |before| before.saturating_sub(1).min(newest));
    let mut next = read_at(store, &query.key, first).await?;
    while let Some(record) = next {
        if past.states.len() == query.limit {
            past.more = true;
            break;
        }
        next = match read_at(store, &query.key, record.revision - 1).await {
            Err(StoreError::Compacted { oldest }) => {
                past.complete_from = oldest;
                None
            }
            read => read?,
        };
        let change = if next.is_some() { EventType::Modified } else { EventType::Added };
        past.states.push(PastState { change, state: Ok(record), written: None });
    }
    Ok(past)
}

async fn read_at(store: &dyn Store, key: &Key, revision: i64) -> Result<Option<Arc<Record>>, StoreError> {
    store.wait_for(revision).await?;
    store.get_at(key, revision).await
}
