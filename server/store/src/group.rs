//! Validation of the Txns of one group, in order. Each Txn sees the effects of the accepted Txns before it. Pure:
//! no clock, no I/O.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::{Event, EventType};
use crate::key::Key;
use crate::prior_states::PriorStates;
use crate::read_only;
use crate::record::{Record, Value};
use crate::txn::{Change, CommittedTxn, Operation, Precondition, PreparedTxn, TxnError};

/// Txns that one database transaction commits.
pub(crate) struct Group<'a> {
    prior: &'a PriorStates,
    /// Revision after the operations accepted so far.
    pub(crate) revision: i64,
    /// Events of the accepted operations, in revision order.
    pub(crate) events: Vec<Arc<Event>>,
    /// Sealed value of each event for the database, `None` if it is stored plain.
    pub(crate) sealed_values: Vec<Option<Arc<[u8]>>>,
    /// State of each examined key before the group and after it.
    pub(crate) touched: HashMap<Key, TouchedKey>,
    /// Record that makes the store read-only, if it exists.
    read_only_record: Result<Option<Arc<Record>>, TxnError>,
}

/// States of a key before and after a group; both are the same record if it was not written.
pub(crate) struct TouchedKey {
    pub(crate) before: Option<Arc<Record>>,
    pub(crate) after: Option<Arc<Record>>,
}

/// Effects of the operations of one Txn so far, dropped if the Txn is rejected.
#[derive(Default)]
struct StagedTxn {
    states: Vec<(Key, Option<Arc<Record>>)>,
    events: Vec<Arc<Event>>,
    sealed: Vec<Option<Arc<[u8]>>>,
}

impl<'a> Group<'a> {
    /// Starts a group after `revision`, at which `basis` contains the states of all keys.
    pub(crate) fn new(prior: &'a PriorStates, revision: i64) -> Self {
        let read_only_record = prior.get(read_only::key());
        Self {
            prior,
            revision,
            events: Vec::new(),
            sealed_values: Vec::new(),
            touched: HashMap::new(),
            read_only_record,
        }
    }

    /// Accepts or rejects a Txn as a whole.
    pub(crate) fn validate(&mut self, prepared: PreparedTxn) -> Result<CommittedTxn, TxnError> {
        let mut staged = StagedTxn::default();
        let PreparedTxn { txn, sealed_values } = prepared;
        if read_only::rejects(&txn)
            && let Some(stopped) = self.read_only_record.as_ref().map_err(TxnError::clone)?
        {
            return Err(TxnError::ReadOnly(read_only::reason_of(stopped)));
        }
        let mut sealed = sealed_values.into_iter();
        let mut records = Vec::with_capacity(txn.operations.len());
        for Operation { key, precondition, change } in txn.operations {
            let sealed = sealed.next().flatten();
            let current = self.current(&staged, &key)?;
            check_readable(&key, precondition, &change, current.as_ref())?;
            check_precondition(&key, precondition, current.as_ref())?;
            let revision = self.revision + 1 + staged.events.len() as i64;
            let mut event = event_of(&key, change, current, revision);
            if let Some(event) = &mut event {
                event.is_record_cached =
                    event.event_type != EventType::Deleted && self.prior.is_cached(key.resource());
            }
            records.push(event.as_ref().map(|event| event.record.clone()));
            staged.sealed.extend(event.as_ref().map(|_| sealed));
            staged.events.extend(event.map(|event| {
                let exists = event.event_type != EventType::Deleted;
                staged.states.push((key, exists.then(|| event.record.clone())));
                Arc::new(event)
            }));
        }
        self.accept(staged);
        Ok(CommittedTxn { revision: self.revision, records })
    }

    fn current(&mut self, staged: &StagedTxn, key: &Key) -> Result<Option<Arc<Record>>, TxnError> {
        if let Some((_, state)) = staged.states.iter().rev().find(|(other, _)| other == key) {
            return Ok(state.clone());
        }
        if let Some(touched) = self.touched.get(key) {
            return Ok(touched.after.clone());
        }
        let prior = self.prior.get(key)?;
        self.touched.insert(key.clone(), TouchedKey { before: prior.clone(), after: prior.clone() });
        Ok(prior)
    }

    fn accept(&mut self, staged: StagedTxn) {
        self.revision += staged.events.len() as i64;
        self.events.extend(staged.events);
        self.sealed_values.extend(staged.sealed);
        for (key, after) in staged.states {
            if read_only::is_read_only_key(&key) {
                self.read_only_record = Ok(after.clone());
            }
            if let Some(touched) = self.touched.get_mut(&key) {
                touched.after = after;
            }
        }
    }
}

/// Rejects all operations but deletions on an unreadable object: the state that a write replaces or a check relies on is unknown.
fn check_readable(
    key: &Key,
    expect: Precondition,
    change: &Change,
    current: Option<&Arc<Record>>,
) -> Result<(), TxnError> {
    let deletes = matches!(change, Change::Delete(_)) && expect != Precondition::Absent;
    match current {
        Some(current) if current.value.is_unreadable() && !deletes => {
            Err(TxnError::Unreadable { key: key.clone() })
        }
        _ => Ok(()),
    }
}

fn check_precondition(
    key: &Key,
    expect: Precondition,
    current: Option<&Arc<Record>>,
) -> Result<(), TxnError> {
    match (expect, current) {
        (Precondition::Any, _) | (Precondition::Absent, None) | (Precondition::Exists, Some(_)) => Ok(()),
        (Precondition::Revision(revision), Some(current)) if current.revision == revision => Ok(()),
        (Precondition::Revision(_), Some(current)) => {
            Err(TxnError::Conflict { key: key.clone(), current: current.clone() })
        }
        (Precondition::Absent, Some(current)) => {
            Err(TxnError::Exists { key: key.clone(), current: current.clone() })
        }
        (Precondition::Revision(_) | Precondition::Exists, None) => {
            Err(TxnError::NotFound { key: key.clone() })
        }
    }
}

fn event_of(key: &Key, change: Change, previous: Option<Arc<Record>>, revision: i64) -> Option<Event> {
    let (event_type, value): (EventType, Value) = match (change, &previous) {
        (Change::Check, _) | (Change::Delete(_), None) => return None,
        (Change::Put(value), None) => (EventType::Added, value),
        (Change::Put(value), Some(_)) => (EventType::Modified, value),
        (Change::Delete(value), Some(_)) => (EventType::Deleted, value),
    };
    let record = Arc::new(Record { key: key.clone(), revision, value });
    Some(Event { event_type, record, previous, unreadable: None, is_record_cached: false })
}
