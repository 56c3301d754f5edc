//! Conversion of store errors to Status.

use portico_machinery::status::{Cause, Reason};
use portico_machinery::{GroupResource, Status};
use portico_store::{StoreError, TxnError};

use crate::unreadable;

/// Message for writers of a stale object.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Status 500 for work that panicked or was aborted because the process ends.
pub(crate) fn unfinished() -> Box<Status> {
    Box::new(Status::internal("the request ended without a response"))
}

/// Status of a failed write. Excludes conflicts that verbs retry.
pub fn from_txn_error(error: TxnError, resource: &GroupResource, name: &str) -> Box<Status> {
    Box::new(match error {
        TxnError::Conflict { .. } => Status::conflict(resource, name, MODIFIED),
        TxnError::NotFound { .. } => Status::not_found(resource, name),
        TxnError::Exists { .. } => Status::already_exists(resource, name),
        TxnError::Unreadable { .. } => unreadable::of_txn(&error, resource, name),
        TxnError::TooLarge(text) => Status::failure(Reason::RequestEntityTooLarge, text),
        TxnError::Full(_) | TxnError::InDoubt(_) | TxnError::Sealed(_) => Status::internal(error),
        TxnError::Unavailable(_) | TxnError::ReadOnly(_) | TxnError::Closed => {
            Status::unavailable(error.to_string()).with_retry_after(1)
        }
    })
}

/// Status of a failed read.
pub fn from_store_error(error: StoreError, requested: i64) -> Box<Status> {
    Box::new(match error {
        StoreError::Compacted { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        StoreError::Lost { .. } => Status::expired(error.to_string()),
        StoreError::Future { current } => too_large_version(requested, current),
        StoreError::Corrupt { key, reason } => {
            unreadable::status(key.resource(), key.name(), key.path(), &reason)
        }
        StoreError::Sealed { .. } => Status::internal(error),
        StoreError::Unavailable(_) | StoreError::Closed => {
            Status::unavailable(error.to_string()).with_retry_after(1)
        }
    })
}

/// Status 504 for a revision that the store has not reached.
pub(crate) fn too_large_version(requested: i64, current: i64) -> Status {
    Status::timeout(format!("Too large resource version: {requested}, current: {current}"))
        .with_cause(Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        })
        .with_retry_after(1)
}
