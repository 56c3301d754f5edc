//! Conversion of a Txn to one etcd transaction: comparisons, writes, and interpretation of the response.
//!
//! All writes of a Txn have one revision. Several operations on one object appear as the last of them only.

use std::sync::Arc;

use super::gate;
use super::keys::Keys;
use super::wire::{
    Compare, CompareResult, CompareTarget, Compared, KeyValue, PutResponse, RequestOp, Response, TxnRequest,
    TxnResponse,
};
use crate::key::Key;
use crate::read_only;
use crate::record::{Record, Value};
use crate::txn::{Change, Committed, Expect, Operation, Txn, TxnError};

/// Plan for one object.
struct Object {
    key: Key,
    place: String,
    /// Preconditions of the object.
    expects: Vec<Expect>,
    /// Index of the last operation that changes it.
    change: Option<usize>,
}

/// Plan of one etcd transaction.
pub(super) struct Plan {
    /// Key of the gate, if the Txn writes.
    gate: Option<Vec<u8>>,
    operations: Vec<Operation>,
    objects: Vec<Object>,
    /// Index of the object of each operation.
    about: Vec<usize>,
}

/// Result of a transaction.
pub(super) enum Outcome {
    Done(Committed),
    /// Writes are stopped, for this reason.
    Stopped(String),
    /// A precondition does not hold. Contains the object and its current value.
    Refused {
        key: Key,
        expect: Expect,
        current: Option<KeyValue>,
    },
}

impl Plan {
    /// # Errors
    /// An operation has a precondition that contradicts an earlier operation of the same Txn.
    pub(super) fn new(txn: Txn, keys: &Keys) -> Result<Self, TxnError> {
        let gate = read_only::stops(&txn).then(|| gate::place(keys));
        let mut objects: Vec<Object> = Vec::new();
        let mut about = Vec::with_capacity(txn.operations.len());
        let mut at = std::collections::HashMap::new();
        for (index, operation) in txn.operations.iter().enumerate() {
            let object = *at.entry(operation.key.clone()).or_insert_with(|| {
                let (key, place) = (operation.key.clone(), keys.of(&operation.key));
                objects.push(Object { key, place, expects: Vec::new(), change: None });
                objects.len() - 1
            });
            about.push(object);
            let object = &mut objects[object];
            match object.change.map(|earlier| &txn.operations[earlier].change) {
                None => object.expects.push(operation.expect),
                Some(earlier) => check_after(operation, earlier)?,
            }
            if !matches!(operation.change, Change::Check) {
                object.change = Some(index);
            }
        }
        Ok(Self { gate, operations: txn.operations, objects, about })
    }

    /// Iterates over the objects that are written, with their values.
    pub(super) fn puts(&self) -> impl Iterator<Item = (&Key, &str, &Value)> {
        self.objects.iter().filter_map(|object| match &self.operations[object.change?].change {
            Change::Put(value) => Some((&object.key, &*object.place, value)),
            _ => None,
        })
    }

    /// Iterates over the keys of all objects, with true for those that the Txn only deletes.
    pub(super) fn objects(&self) -> impl Iterator<Item = (&Key, bool)> {
        self.objects.iter().map(|object| {
            let change = object.change.map(|at| &self.operations[at]);
            let deletes = matches!(change, Some(operation) if matches!(operation.change, Change::Delete(_)));
            (&object.key, deletes && !object.expects.contains(&Expect::Absent))
        })
    }

    /// Returns a key with the value that it has if the Txn was committed, to resolve a transaction in doubt. `None` if
    /// the Txn puts nothing.
    pub(super) fn witness(&self, stored: &[(Vec<u8>, i64)]) -> Option<(Vec<u8>, Vec<u8>)> {
        let (_, place, _) = self.puts().next()?;
        let (value, _) = stored.first()?;
        Some((place.as_bytes().to_vec(), value.clone()))
    }

    /// Returns the result of a transaction that is known to be committed at a revision although its response was lost.
    pub(super) fn done_at(self, revision: i64) -> Committed {
        let all = self.objects.iter().filter(|object| object.change.is_some());
        let done = all.map(|_| Response::Put(PutResponse {})).collect::<Vec<_>>();
        self.done(done.into_iter(), revision, revision)
    }

    /// True if no request to etcd is needed.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns the request; `stored` are the bytes and leases of [`TxnPlan::puts`], in order.
    pub(super) fn request(&self, stored: Vec<(Vec<u8>, i64)>) -> TxnRequest {
        let mut stored = stored.into_iter();
        let mut request = TxnRequest::default();
        if let Some(gate) = &self.gate {
            request.compare.push(Compare::is_at(gate.clone(), 0));
            request.failure.push(RequestOp::get(gate.clone()));
        }
        for object in &self.objects {
            let key = object.place.clone().into_bytes();
            let compares = object.expects.iter().filter_map(|expect| compare(&key, *expect));
            let before = request.compare.len();
            request.compare.extend(compares);
            if request.compare.len() > before {
                request.failure.push(RequestOp::get(key.clone()));
            }
            let write = match object.change.map(|at| &self.operations[at].change) {
                Some(Change::Put(_)) => {
                    let (value, lease) = stored.next().unwrap_or_default();
                    RequestOp::put(key, value, lease)
                }
                Some(Change::Delete(_)) => RequestOp::delete(key),
                _ => continue,
            };
            request.success.push(write);
        }
        request
    }

    /// Interprets the response; `published` is the revision to report if nothing was written.
    pub(super) fn outcome(self, answer: TxnResponse, shown: i64) -> Result<Outcome, TxnError> {
        let revision = answer.header.unwrap_or_default().revision;
        let responses = answer.responses.into_iter().filter_map(|op| op.response);
        if answer.succeeded {
            Ok(Outcome::Done(self.done(responses, revision, shown)))
        } else {
            self.refused(responses)
        }
    }

    fn done(self, mut responses: impl Iterator<Item = Response>, revision: i64, shown: i64) -> Committed {
        let mut has_written = vec![false; self.objects.len()];
        for (object, written) in self.objects.iter().zip(&mut has_written) {
            if object.change.is_some() {
                *written = match responses.next() {
                    Some(Response::Delete(response)) => response.deleted > 0,
                    response => response.is_some(),
                };
            }
        }
        let records: Vec<_> = self
            .operations
            .into_iter()
            .zip(&self.about)
            .map(|(Operation { key, change, .. }, object)| match change {
                Change::Put(value) | Change::Delete(value) if has_written[*object] => {
                    Some(Arc::new(Record { key, revision, value }))
                }
                _ => None,
            })
            .collect();
        let revision = if records.iter().any(Option::is_some) { revision } else { shown };
        Committed { revision, records }
    }

    fn refused(self, mut responses: impl Iterator<Item = Response>) -> Result<Outcome, TxnError> {
        if self.gate.is_some()
            && let Some(Response::Range(found)) = responses.next()
            && let Some(found) = found.kvs.first()
        {
            return Ok(Outcome::Stopped(read_only::reason_in(&found.value)));
        }
        for object in self.objects {
            if object.expects.iter().all(|expect| *expect == Expect::Any) {
                continue;
            }
            let Some(Response::Range(found)) = responses.next() else { break };
            let current = found.kvs.into_iter().next();
            let revision = current.as_ref().map(|found| found.mod_revision);
            let fails = |expect: &&Expect| match (expect, revision) {
                (Expect::Any, _) | (Expect::Absent, None) | (Expect::Exists, Some(_)) => false,
                (Expect::Revision(expected), Some(found)) => *expected != found,
                _ => true,
            };
            if let Some(expect) = object.expects.iter().find(fails).copied() {
                return Ok(Outcome::Refused { key: object.key, expect, current });
            }
        }
        Err(TxnError::Unavailable("transaction rejected without a failed comparison".to_owned()))
    }
}

/// Checks the precondition of an operation after a change of the same object by the same Txn.
fn check_after(operation: &Operation, earlier: &Change) -> Result<(), TxnError> {
    let key = operation.key.clone();
    match (operation.expect, earlier) {
        (Expect::Any, _) | (Expect::Exists, Change::Put(_)) | (Expect::Absent, Change::Delete(_)) => Ok(()),
        (Expect::Absent, Change::Put(value)) => Err(TxnError::Exists {
            current: Arc::new(Record { key: key.clone(), revision: 0, value: value.clone() }),
            key,
        }),
        (Expect::Revision(_), Change::Put(value)) => Err(TxnError::Conflict {
            current: Arc::new(Record { key: key.clone(), revision: 0, value: value.clone() }),
            key,
        }),
        _ => Err(TxnError::NotFound { key }),
    }
}

fn compare(key: &[u8], expect: Expect) -> Option<Compare> {
    match expect {
        Expect::Any => None,
        Expect::Absent => Some(Compare::is_at(key.to_vec(), 0)),
        Expect::Exists => Some(Compare {
            result: CompareResult::Greater.into(),
            target: CompareTarget::Version.into(),
            key: key.to_vec(),
            compared: Some(Compared::Version(0)),
        }),
        // Revisions of objects start at 1.
        Expect::Revision(revision) => {
            Some(Compare::is_at(key.to_vec(), if revision > 0 { revision } else { -1 }))
        }
    }
}
