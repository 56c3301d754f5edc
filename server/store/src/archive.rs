//! History that is kept longer than watches need it: of which resources, how long, and how its states are asked for.
//!
//! The log forgets by age of everything; what it forgets of these resources goes to the archive, in the same transaction. Knows no
//! SQL.

use std::sync::Arc;
use std::time::Duration;

use portico_machinery::GroupResource;

use crate::error::StoreError;
use crate::event::EventType;
use crate::key::Key;
use crate::record::Record;
use crate::store::Store;
use crate::unreadable::Unreadable;

/// Which resources the archive is for, and how long it keeps each of their states after that was superseded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveRules {
    by_resource: Vec<(GroupResource, Duration)>,
    others: Option<Duration>,
}

impl ArchiveRules {
    /// Keeps states of a storage resource so long; a second rule for it counts instead of the first. Zero keeps none.
    pub fn keep(&mut self, resource: GroupResource, kept: Duration) {
        self.by_resource.retain(|(other, _)| *other != resource);
        self.by_resource.push((resource, kept));
    }

    /// Keeps states of all other resources so long.
    pub fn keep_others(&mut self, kept: Duration) {
        self.others = Some(kept);
    }

    /// How long states of this resource are kept; none if they are not.
    #[must_use]
    pub fn of(&self, resource: &GroupResource) -> Option<Duration> {
        let own = self.by_resource.iter().find(|(other, _)| other == resource).map(|(_, kept)| *kept);
        own.or(self.others).filter(|kept| !kept.is_zero())
    }

    /// Whether no states of any resource are kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.longest().is_zero()
    }

    /// How long the states are kept that are kept longest.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.by_resource.iter().map(|(_, kept)| *kept).chain(self.others).max().unwrap_or_default()
    }
}

/// A question for the states that an object has had.
#[derive(Clone, Debug)]
pub struct PastQuery {
    /// Which object.
    pub key: Key,
    /// Only states older than this revision; none: from the newest on.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: usize,
}

/// A state that an object has or had.
#[derive(Clone, Debug)]
pub struct PastState {
    /// What the write did that made it.
    pub change: EventType,
    /// The state; of a deletion the last one. What cannot be read is named.
    pub state: Result<Arc<Record>, Unreadable>,
    /// When it was written, in Unix seconds, as near as the marks are; none if that is not known any more.
    pub written: Option<i64>,
}

impl PastState {
    /// The revision of the write that made it.
    #[must_use]
    pub fn revision(&self) -> i64 {
        match &self.state {
            Ok(record) => record.revision,
            Err(object) => object.revision(),
        }
    }
}

/// The answer to a [`PastQuery`].
#[derive(Clone, Debug, Default)]
pub struct PastStates {
    /// The newest first.
    pub states: Vec<PastState>,
    /// Whether older ones follow.
    pub more: bool,
    /// From which revision on all states are kept: what was superseded before it is forgotten.
    pub complete_from: i64,
}

/// The states of an object by exact reads, one after the other: for a store that keeps no archive. They end where history does, and
/// where the object was created: what was before a deletion is not found.
pub(crate) async fn by_exact_reads(store: &dyn Store, query: PastQuery) -> Result<PastStates, StoreError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_a_resource_counts_before_the_one_for_all_others() {
        let mut rules = ArchiveRules::default();
        let (maps, events) = (GroupResource::new("", "configmaps"), GroupResource::new("", "events"));
        assert!(rules.is_empty());
        rules.keep(maps.clone(), Duration::from_secs(5));
        assert_eq!((rules.of(&maps), rules.of(&events)), (Some(Duration::from_secs(5)), None));
        rules.keep_others(Duration::from_secs(9));
        rules.keep(events.clone(), Duration::ZERO);
        rules.keep(maps.clone(), Duration::from_secs(7));
        assert_eq!((rules.of(&maps), rules.of(&events)), (Some(Duration::from_secs(7)), None));
        assert_eq!(rules.of(&GroupResource::new("", "nodes")), Some(Duration::from_secs(9)));
        assert_eq!(rules.longest(), Duration::from_secs(9));
    }
}
