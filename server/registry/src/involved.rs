//! Kinds whose writes involve other objects: what they look up before a write is prepared, and what goes with it in the
//! same transaction.
//!
//! Strategies see one object; the few that need more hand out one of these. A write that loses a race for something
//! that it wanted to take along is begun anew, so that it sees who was faster.

use std::future::Future;
use std::pin::Pin;

use portico_machinery::Object;
use portico_store::{Key, Operation, TxnError};

use crate::Result;
use crate::registry::{Inner, Part};
use crate::served::Served;

/// A write that begins.
#[derive(Clone, Copy)]
pub(crate) struct Beginning<'a> {
    /// Where the other objects are.
    pub(crate) inner: &'a Inner,
    /// The kind.
    pub(crate) served: &'a Served,
    /// The object or the subresource.
    pub(crate) part: Part<'a>,
    /// What is there; nothing for a create.
    pub(crate) old: Option<&'a Object>,
    /// Whether nothing is written in the end.
    pub(crate) dry_run: bool,
}

/// What is under way.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// See the module.
pub(crate) trait Involved: Send + Sync {
    /// Before anything of a write is prepared or judged: fills in what depends on other objects, refuses what they
    /// rule out, and names further operations of the same transaction. May be asked again for the same write.
    fn begin<'a>(&'a self, write: Beginning<'a>, new: &'a mut Object) -> Pending<'a, Vec<Operation>>;

    /// What goes with a removal.
    fn end<'a>(&'a self, _inner: &'a Inner, _last: &'a Object) -> Pending<'a, Vec<Operation>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

impl Served {
    /// Begins a write, if the kind has something to do then.
    pub(crate) async fn begin(&self, write: Beginning<'_>, new: &mut Object) -> Result<Vec<Operation>> {
        match self.strategy.involved() {
            Some(involved) => involved.begin(write, new).await,
            None => Ok(Vec::new()),
        }
    }
}

/// Whether a transaction failed over something else than the object that it is about.
pub(crate) fn lost_another(error: &TxnError, own: &Key) -> bool {
    match error {
        TxnError::Exists { key, .. } | TxnError::Conflict { key, .. } | TxnError::NotFound { key } => {
            key != own
        }
        _ => false,
    }
}
