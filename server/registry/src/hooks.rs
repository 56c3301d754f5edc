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
use crate::registry::{Context, Part, Verbs};
use crate::served::ServedResource;

/// A write that begins.
#[derive(Clone, Copy)]
pub struct Beginning<'a> {
    /// Where the other objects are.
    pub verbs: &'a Verbs,
    /// The kind.
    pub served: &'a ServedResource,
    /// The object or the subresource.
    pub part: Part<'a>,
    /// What is there; nothing for a create.
    pub old: Option<&'a Object>,
    /// Whether nothing is written in the end.
    pub dry_run: bool,
}

/// What is under way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// See the module.
pub trait TransactionHooks: Send + Sync {
    /// Before anything of a write is prepared or judged: fills in what depends on other objects, refuses what they
    /// rule out, and names further operations of the same transaction. May be asked again for the same write.
    fn begin<'a>(&'a self, write: Beginning<'a>, new: &'a mut Object) -> Pending<'a, Vec<Operation>>;

    /// What goes with a removal.
    fn end<'a>(&'a self, _inner: &'a Verbs, _last: &'a Object) -> Pending<'a, Vec<Operation>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Asks whether the caller may write such an object, before anything of it is validated.
pub trait WriteGuard: Send + Sync {
    /// Refuses a write whose caller would give away what they do not hold.
    ///
    /// # Errors
    /// 403, 404 as upstream's policy-based storage of the kind.
    fn check<'a>(
        &'a self,
        verbs: &'a Verbs,
        context: &'a Context,
        served: &'a ServedResource,
        new: &'a Object,
        old: Option<&'a Object>,
    ) -> Pending<'a, ()>;
}

impl Verbs {
    /// Asks the kind's guard, if it has one, whether the caller may write this.
    pub(crate) async fn guard_write(
        &self,
        context: &Context,
        served: &ServedResource,
        new: &Object,
        old: Option<&Object>,
    ) -> Result<()> {
        match served.strategy.write_guard() {
            Some(guard) => guard.check(self, context, served, new, old).await,
            None => Ok(()),
        }
    }
}

impl ServedResource {
    /// Begins a write, if the kind has something to do then.
    pub async fn begin(&self, write: Beginning<'_>, new: &mut Object) -> Result<Vec<Operation>> {
        match self.strategy.transaction_hooks() {
            Some(involved) => involved.begin(write, new).await,
            None => Ok(Vec::new()),
        }
    }
}

/// Whether a transaction failed over something else than the object that it is about.
pub fn lost_another(error: &TxnError, own: &Key) -> bool {
    match error {
        TxnError::Exists { key, .. } | TxnError::Conflict { key, .. } | TxnError::NotFound { key } => {
            key != own
        }
        _ => false,
    }
}
