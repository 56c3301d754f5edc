//! A Txn as one transaction of etcd: what it compares, what it writes, and what its answer means.
//!
//! All of it gets one revision. What several operations do to one object shows as the last of them alone.

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

/// What becomes of one object.
struct Object {
    key: Key,
    place: String,
    /// What must hold of it before.
    expects: Vec<Expect>,
    /// Which operation changes it last.
    change: Option<usize>,
}

/// See the module.
pub(super) struct Plan {
    /// The key that is not there while writes are taken, if this writes.
    gate: Option<Vec<u8>>,
    operations: Vec<Operation>,
    objects: Vec<Object>,
    /// Which object each operation is about.
    about: Vec<usize>,
}

/// Whether it was done.
pub(super) enum Outcome {
    Done(Committed),
    /// Writes are stopped, for this reason.
    Stopped(String),
    /// An expectation does not hold: of which object, and what it is now.
    Refused {
        key: Key,
        expect: Expect,
        current: Option<KeyValue>,
    },
}

impl Plan {
    /// # Errors
    /// An operation expects what an earlier one of the same Txn has made otherwise.
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

    /// The objects that are written, and with what.
    pub(super) fn puts(&self) -> impl Iterator<Item = (&Key, &str, &Value)> {
        self.objects.iter().filter_map(|object| match &self.operations[object.change?].change {
            Change::Put(value) => Some((&object.key, &*object.place, value)),
            _ => None,
        })
    }

    /// The keys of all objects, and whether this one only deletes it.
    pub(super) fn objects(&self) -> impl Iterator<Item = (&Key, bool)> {
        self.objects.iter().map(|object| {
            let change = object.change.map(|at| &self.operations[at]);
            let deletes = matches!(change, Some(operation) if matches!(operation.change, Change::Delete(_)));
            (&object.key, deletes && !object.expects.contains(&Expect::Absent))
        })
    }

    /// One key whose state shows whether the Txn was done, with its value then. Nothing for one that puts nothing.
    pub(super) fn witness(&self, stored: &[(Vec<u8>, i64)]) -> Option<(Vec<u8>, Vec<u8>)> {
        let (_, place, _) = self.puts().next()?;
        let (value, _) = stored.first()?;
        Some((place.as_bytes().to_vec(), value.clone()))
    }

    /// What it is once it is known to have been done at a revision, though its answer is lost.
    pub(super) fn done_at(self, revision: i64) -> Committed {
        let all = self.objects.iter().filter(|object| object.change.is_some());
        let done = all.map(|_| Response::Put(PutResponse {})).collect::<Vec<_>>();
        self.done(done.into_iter(), revision, revision)
    }

    /// Whether there is nothing to ask etcd for.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The request; `stored` are the bytes and the leases of [`Plan::puts`], in their order.
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

    /// What came of it; `shown` is the revision of one that wrote nothing.
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

/// Whether an operation's expectation holds behind a change of the same object by the same Txn.
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
        // No object has one below 1.
        Expect::Revision(revision) => {
            Some(Compare::is_at(key.to_vec(), if revision > 0 { revision } else { -1 }))
        }
    }
}
