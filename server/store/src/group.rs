//! Validation of the Txns of one group, in order. Each Txn sees the effects of the accepted Txns before it. Pure:
//! no clock, no I/O.

use std::collections::HashMap;
use std::sync::Arc;

use crate::basis::Basis;
use crate::event::{Event, EventType};
use crate::key::Key;
use crate::read_only;
use crate::record::{Record, Value};
use crate::txn::{Change, Committed, Expect, Operation, Prepared, TxnError};

/// Txns that one database transaction commits.
pub(crate) struct Group<'a> {
    basis: &'a Basis,
    /// Revision after the operations accepted so far.
    pub(crate) revision: i64,
    /// Events of the accepted operations, in revision order.
    pub(crate) events: Vec<Arc<Event>>,
    /// Sealed value of each event for the database, `None` if it is stored plain.
    pub(crate) sealed: Vec<Option<Arc<[u8]>>>,
    /// State of each examined key before the group and after it.
    pub(crate) touched: HashMap<Key, Touched>,
    /// Record that makes the store read-only, if it exists.
    stopped: Result<Option<Arc<Record>>, TxnError>,
}

/// States of a key before and after a group; both are the same record if it was not written.
pub(crate) struct Touched {
    pub(crate) before: Option<Arc<Record>>,
    pub(crate) after: Option<Arc<Record>>,
}

/// Effects of the operations of one Txn so far, dropped if the Txn is rejected.
#[derive(Default)]
struct Staged {
    states: Vec<(Key, Option<Arc<Record>>)>,
    events: Vec<Arc<Event>>,
    sealed: Vec<Option<Arc<[u8]>>>,
}

impl<'a> Group<'a> {
    /// Starts a group after `revision`, at which `basis` contains the states of all keys.
    pub(crate) fn new(basis: &'a Basis, revision: i64) -> Self {
        let stopped = basis.get(read_only::key());
        Self { basis, revision, events: Vec::new(), sealed: Vec::new(), touched: HashMap::new(), stopped }
    }

    /// Accepts or rejects a Txn as a whole.
    pub(crate) fn check(&mut self, prepared: Prepared) -> Result<Committed, TxnError> {
        let mut staged = Staged::default();
        let Prepared { txn, sealed } = prepared;
        if read_only::stops(&txn)
            && let Some(stopped) = self.stopped.as_ref().map_err(TxnError::clone)?
        {
            return Err(TxnError::ReadOnly(read_only::reason_of(stopped)));
        }
        let mut sealed = sealed.into_iter();
        let mut records = Vec::with_capacity(txn.operations.len());
        for Operation { key, expect, change } in txn.operations {
            let sealed = sealed.next().flatten();
            let current = self.current(&staged, &key)?;
            check_readable(&key, expect, &change, current.as_ref())?;
            check(&key, expect, current.as_ref())?;
            let revision = self.revision + 1 + staged.events.len() as i64;
            let mut event = event_of(&key, change, current, revision);
            if let Some(event) = &mut event {
                event.is_held = event.event_type != EventType::Deleted && self.basis.holds(key.resource());
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
        Ok(Committed { revision: self.revision, records })
    }

    fn current(&mut self, staged: &Staged, key: &Key) -> Result<Option<Arc<Record>>, TxnError> {
        if let Some((_, state)) = staged.states.iter().rev().find(|(other, _)| other == key) {
            return Ok(state.clone());
        }
        if let Some(touched) = self.touched.get(key) {
            return Ok(touched.after.clone());
        }
        let before = self.basis.get(key)?;
        self.touched.insert(key.clone(), Touched { before: before.clone(), after: before.clone() });
        Ok(before)
    }

    fn accept(&mut self, staged: Staged) {
        self.revision += staged.events.len() as i64;
        self.events.extend(staged.events);
        self.sealed.extend(staged.sealed);
        for (key, after) in staged.states {
            if read_only::is_switch(&key) {
                self.stopped = Ok(after.clone());
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
    expect: Expect,
    change: &Change,
    current: Option<&Arc<Record>>,
) -> Result<(), TxnError> {
    let deletes = matches!(change, Change::Delete(_)) && expect != Expect::Absent;
    match current {
        Some(current) if current.value.is_unreadable() && !deletes => {
            Err(TxnError::Unreadable { key: key.clone() })
        }
        _ => Ok(()),
    }
}

fn check(key: &Key, expect: Expect, current: Option<&Arc<Record>>) -> Result<(), TxnError> {
    match (expect, current) {
        (Expect::Any, _) | (Expect::Absent, None) | (Expect::Exists, Some(_)) => Ok(()),
        (Expect::Revision(revision), Some(current)) if current.revision == revision => Ok(()),
        (Expect::Revision(_), Some(current)) => {
            Err(TxnError::Conflict { key: key.clone(), current: current.clone() })
        }
        (Expect::Absent, Some(current)) => {
            Err(TxnError::Exists { key: key.clone(), current: current.clone() })
        }
        (Expect::Revision(_) | Expect::Exists, None) => Err(TxnError::NotFound { key: key.clone() }),
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
    Some(Event { event_type, record, previous, unreadable: None, is_held: false })
}
