//! Shared state of all writes: objects, hooks and admission.
//!
//! Each verb is implemented in a separate file (`create`, `update`, `patch`, ...); all of them run the same steps.

use std::sync::Arc;

use portico_kit::{slow_trace, spans};
use portico_store::{Record, Txn, TxnError, Value};

use crate::Result;
use crate::admission::Admission;
use crate::hooks::HookTable;
use crate::latencies::COMMIT;
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::stored_object;

/// Verbs that write.
pub struct Verbs {
    /// Read access to stored objects.
    pub objects: Arc<Objects>,
    /// Admission of writes.
    pub(crate) admission: Arc<dyn Admission>,
    /// Hooks of kinds whose writes involve other objects.
    pub(crate) hooks: HookTable,
}

impl Verbs {
    /// Transaction that removes an object, with the operations of its hooks.
    pub(crate) async fn removal(
        &self,
        served_resource: &ServedResource,
        current: &Record,
        last: Value,
    ) -> Result<Txn> {
        let mut txn = Txn::delete(current.key.clone(), current.revision, last);
        if let Some(hooks) = self.hooks.transaction(served_resource) {
            txn.operations
                .extend(hooks.before_removal(&self.objects, &stored_object::decode(current)).await?);
        }
        Ok(txn)
    }

    /// Commits a transaction and returns the record of its first operation.
    pub(crate) async fn commit(&self, txn: Txn) -> std::result::Result<Arc<Record>, TxnError> {
        let committing = spans::child(COMMIT).instrument(self.objects.store.commit(vec![txn]));
        let result = slow_trace::part(COMMIT, committing).await.pop().unwrap_or(Err(TxnError::Closed))?;
        result.record().cloned().ok_or(TxnError::Closed)
    }
}
