//! Conversion of a Txn to one etcd transaction: comparisons, writes, and interpretation of the response.
//!
//! All writes of a Txn have one revision. Several operations on one object appear as the last of them only.

use std::sync::Arc;

use super::gate;
use super::keys::EtcdKeys;
use super::wire::{
    Compare, CompareResult, CompareTarget, Compared, KeyValue, PutResponse, RequestOp, Response, TxnRequest,
    TxnResponse,
};
use crate::key::Key;
use crate::read_only;
use crate::record::{Record, Value};
use crate::txn::{Change, CommittedTxn, Operation, Precondition, Txn, TxnError};

/// Plan for one object.
struct ObjectPlan {
    key: Key,
    etcd_key: String,
    /// Preconditions of the object.
    preconditions: Vec<Precondition>,
    /// Index of the last operation that changes it.
    change: Option<usize>,
}

/// Plan of one etcd transaction.
pub(super) struct TxnPlan {
    /// Key of the gate, if the Txn writes.
    gate_key: Option<Vec<u8>>,
    operations: Vec<Operation>,
    objects: Vec<ObjectPlan>,
    /// Index of the object of each operation.
    object_indexes: Vec<usize>,
}

/// Result of a transaction.
pub(super) enum TxnOutcome {
    Done(CommittedTxn),
    /// Writes are stopped, for this reason.
    Stopped(String),
    /// A precondition does not hold. Contains the object and its current value.
    Refused {
        key: Key,
        precondition: Precondition,
        current: Option<KeyValue>,
    },
}

impl TxnPlan {
    /// # Errors
    /// An operation has a precondition that contradicts an earlier operation of the same Txn.
    pub(super) fn new(txn: Txn, keys: &EtcdKeys) -> Result<Self, TxnError> {
        let gate_key = read_only::rejects(&txn).then(|| gate::gate_key(keys));
        let mut objects: Vec<ObjectPlan> = Vec::new();
        let mut object_indexes = Vec::with_capacity(txn.operations.len());
        let mut object_by_key = std::collections::HashMap::new();
        for (index, operation) in txn.operations.iter().enumerate() {
            let object = *object_by_key.entry(operation.key.clone()).or_insert_with(|| {
                let (key, etcd_key) = (operation.key.clone(), keys.object_key(&operation.key));
                objects.push(ObjectPlan { key, etcd_key, preconditions: Vec::new(), change: None });
                objects.len() - 1
            });
            object_indexes.push(object);
            let object = &mut objects[object];
            match object.change.map(|earlier| &txn.operations[earlier].change) {
                None => object.preconditions.push(operation.precondition),
                Some(earlier) => check_after_change(operation, earlier)?,
            }
            if !matches!(operation.change, Change::Check) {
                object.change = Some(index);
            }
        }
        Ok(Self { gate_key, operations: txn.operations, objects, object_indexes })
    }

    /// Iterates over the objects that are written, with their values.
    pub(super) fn puts(&self) -> impl Iterator<Item = (&Key, &str, &Value)> {
        self.objects.iter().filter_map(|object| match &self.operations[object.change?].change {
            Change::Put(value) => Some((&object.key, &*object.etcd_key, value)),
            _ => None,
        })
    }

    /// Iterates over the keys of all objects, with true for those that the Txn only deletes.
    pub(super) fn objects(&self) -> impl Iterator<Item = (&Key, bool)> {
        self.objects.iter().map(|object| {
            let change = object.change.map(|index| &self.operations[index]);
            let deletes = matches!(change, Some(operation) if matches!(operation.change, Change::Delete(_)));
            (&object.key, deletes && !object.preconditions.contains(&Precondition::Absent))
        })
    }

    /// Returns a key with the value that it has if the Txn was committed, to resolve a transaction in doubt. `None` if
    /// the Txn puts nothing.
    pub(super) fn probe_key(&self, stored: &[(Vec<u8>, i64)]) -> Option<(Vec<u8>, Vec<u8>)> {
        let (_, etcd_key, _) = self.puts().next()?;
        let (value, _) = stored.first()?;
        Some((etcd_key.as_bytes().to_vec(), value.clone()))
    }

    /// Returns the result of a transaction that is known to be committed at a revision although its response was lost.
    pub(super) fn committed_at(self, revision: i64) -> CommittedTxn {
        let changed = self.objects.iter().filter(|object| object.change.is_some());
        let responses = changed.map(|_| Response::Put(PutResponse {})).collect::<Vec<_>>();
        self.committed(responses.into_iter(), revision, revision)
    }

    /// True if no request to etcd is needed.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns the request; `stored` are the bytes and leases of [`TxnPlan::puts`], in order.
    pub(super) fn request(&self, stored: Vec<(Vec<u8>, i64)>) -> TxnRequest {
        let mut stored = stored.into_iter();
        let mut request = TxnRequest::default();
        if let Some(gate) = &self.gate_key {
            request.compare.push(Compare::is_at(gate.clone(), 0));
            request.failure.push(RequestOp::get(gate.clone()));
        }
        for object in &self.objects {
            let key = object.etcd_key.clone().into_bytes();
            let compares =
                object.preconditions.iter().filter_map(|precondition| comparison(&key, *precondition));
            let compare_count = request.compare.len();
            request.compare.extend(compares);
            if request.compare.len() > compare_count {
                request.failure.push(RequestOp::get(key.clone()));
            }
            let write = match object.change.map(|index| &self.operations[index].change) {
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
    pub(super) fn outcome(self, response: TxnResponse, published: i64) -> Result<TxnOutcome, TxnError> {
        let revision = response.header.unwrap_or_default().revision;
        let responses = response.responses.into_iter().filter_map(|op| op.response);
        if response.succeeded {
            Ok(TxnOutcome::Done(self.committed(responses, revision, published)))
        } else {
            self.refusal(responses)
        }
    }

    fn committed(
        self,
        mut responses: impl Iterator<Item = Response>,
        revision: i64,
        published: i64,
    ) -> CommittedTxn {
        let mut has_written = vec![false; self.objects.len()];
        for (object, is_written) in self.objects.iter().zip(&mut has_written) {
            if object.change.is_some() {
                *is_written = match responses.next() {
                    Some(Response::Delete(response)) => response.deleted > 0,
                    response => response.is_some(),
                };
            }
        }
        let records: Vec<_> = self
            .operations
            .into_iter()
            .zip(&self.object_indexes)
            .map(|(Operation { key, change, .. }, object)| match change {
                Change::Put(value) | Change::Delete(value) if has_written[*object] => {
                    Some(Arc::new(Record { key, revision, value }))
                }
                _ => None,
            })
            .collect();
        let revision = if records.iter().any(Option::is_some) { revision } else { published };
        CommittedTxn { revision, records }
    }

    fn refusal(self, mut responses: impl Iterator<Item = Response>) -> Result<TxnOutcome, TxnError> {
        if self.gate_key.is_some()
            && let Some(Response::Range(found)) = responses.next()
            && let Some(found) = found.kvs.first()
        {
            return Ok(TxnOutcome::Stopped(read_only::reason_in(&found.value)));
        }
        for object in self.objects {
            if object.preconditions.iter().all(|precondition| *precondition == Precondition::Any) {
                continue;
            }
            let Some(Response::Range(found)) = responses.next() else { break };
            let current = found.kvs.into_iter().next();
            let revision = current.as_ref().map(|found| found.mod_revision);
            let fails = |precondition: &&Precondition| match (precondition, revision) {
                (Precondition::Any, _) | (Precondition::Absent, None) | (Precondition::Exists, Some(_)) => {
                    false
                }
                (Precondition::Revision(expected), Some(found)) => *expected != found,
                _ => true,
            };
            if let Some(precondition) = object.preconditions.iter().find(fails).copied() {
                return Ok(TxnOutcome::Refused { key: object.key, precondition, current });
            }
        }
        Err(TxnError::Unavailable("transaction rejected without a failed comparison".to_owned()))
    }
}

/// Checks the precondition of an operation after a change of the same object by the same Txn.
fn check_after_change(operation: &Operation, earlier: &Change) -> Result<(), TxnError> {
    let key = operation.key.clone();
    match (operation.precondition, earlier) {
        (Precondition::Any, _)
        | (Precondition::Exists, Change::Put(_))
        | (Precondition::Absent, Change::Delete(_)) => Ok(()),
        (Precondition::Absent, Change::Put(value)) => Err(TxnError::Exists {
            current: Arc::new(Record { key: key.clone(), revision: 0, value: value.clone() }),
            key,
        }),
        (Precondition::Revision(_), Change::Put(value)) => Err(TxnError::Conflict {
            current: Arc::new(Record { key: key.clone(), revision: 0, value: value.clone() }),
            key,
        }),
        _ => Err(TxnError::NotFound { key }),
    }
}

fn comparison(key: &[u8], precondition: Precondition) -> Option<Compare> {
    match precondition {
        Precondition::Any => None,
        Precondition::Absent => Some(Compare::is_at(key.to_vec(), 0)),
        Precondition::Exists => Some(Compare {
            result: CompareResult::Greater.into(),
            target: CompareTarget::Version.into(),
            key: key.to_vec(),
            compared: Some(Compared::Version(0)),
        }),
        // Revisions of objects start at 1.
        Precondition::Revision(revision) => {
            Some(Compare::is_at(key.to_vec(), if revision > 0 { revision } else { -1 }))
        }
    }
}
