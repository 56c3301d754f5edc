//! What all writes share: the objects, what their kinds do with other objects, and who is asked about them.
//!
//! The verbs themselves stand in a file each (`create`, `update`, `patch`, ...); they all pass the same steps.

use std::sync::Arc;

use portico_kit::{slow_trace, spans};
use portico_store::{Record, Txn, TxnError, Value};

use crate::Result;
use crate::admission::Admission;
use crate::hooks::HookTable;
use crate::latencies::COMMIT;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::stored;

/// The verbs that write.
pub struct Verbs {
    /// What is stored.
    pub objects: Arc<Objects>,
    /// Who else is asked about writes.
    pub(crate) admission: Arc<dyn Admission>,
    /// What kinds do with other objects.
    pub(crate) hooks: HookTable,
}

impl Verbs {
    /// A removal, with what goes together with it.
    pub(crate) async fn removal(
        &self,
        served: &ServedResource,
        current: &Record,
        last: Value,
    ) -> Result<Txn> {
        let mut txn = Txn::delete(current.key.clone(), current.revision, last);
        if let Some(hooks) = self.hooks.transaction(served) {
            txn.operations.extend(hooks.end(&self.objects, &stored::decode(current)).await?);
        }
        Ok(txn)
    }

    /// Writes a transaction and gives back what its first operation wrote.
    pub(crate) async fn commit(&self, txn: Txn) -> std::result::Result<Arc<Record>, TxnError> {
        let committing = spans::child(COMMIT).within(self.objects.store.commit(vec![txn]));
        let result = slow_trace::part(COMMIT, committing).await.pop().unwrap_or(Err(TxnError::Closed))?;
        result.record().cloned().ok_or(TxnError::Closed)
    }
}
