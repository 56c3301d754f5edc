//! Changes of stored objects by the server itself, without the rules of an update: bindings, disruption budgets, quota usage.

use portico_machinery::{Object, Status};
use portico_store::{Txn, TxnError};

use crate::Result;
use crate::attempts::{MAX_WRITE_ATTEMPTS, too_many_changes};
use crate::served_resource::ServedResource;
use crate::verbs::Verbs;
use crate::{failure, stored_object};

impl Verbs {
    /// Applies `change` to an object and stores the result; retries after concurrent writes. Returns the resulting object with
    /// its revision.
    pub async fn modify(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        name: &str,
        dry_run: bool,
        change: impl Fn(&mut Object) -> Result<()> + Send,
    ) -> Result<Object> {
        let mut newer = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let current = match newer {
                Some(record) => self.objects.convert_for_request(served_resource, record).await?,
                None => self.objects.get(served_resource, namespace, name).await?,
            };
            let current = self.objects.recent.get_or_insert(current);
            let mut object = current.object().clone();
            change(&mut object)?;
            served_resource.stored_info().schema.normalize(&mut object);
            if dry_run || object == *current.object() {
                return Ok(object);
            }
            let value = self.objects.encode_for_storage(served_resource, &mut object).await?;
            let (key, revision) = (current.record().key.clone(), current.record().revision);
            match self.commit_checked(served_resource, Txn::update(key, revision, value)).await? {
                Ok(record) => return Ok(stored_object::decode(&record)),
                Err(TxnError::Conflict { current, .. }) => newer = Some(current),
                Err(TxnError::NotFound { .. }) => {
                    return Err(Box::new(Status::not_found(&served_resource.resource, name)));
                }
                Err(error) => return Err(failure::from_txn_error(error, &served_resource.resource, name)),
            }
        }
        Err(too_many_changes(&served_resource.resource, name))
    }
}
