//! Lists for decisions that would be wrong if an object were missing.

use std::sync::Arc;

use portico_store::{CurrentState, Record, Unreadable};

use super::Page;
use crate::Result;
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::{failure, unreadable};

impl Objects {
    /// Returns the records of a complete list of a namespace (empty: of all) if no object that may belong to it was omitted.
    ///
    /// # Errors
    /// Same errors as [`Objects::check_complete`].
    pub async fn require_complete(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        page: Page,
    ) -> Result<Vec<Arc<Record>>> {
        self.check_complete(served_resource, namespace).await?;
        match page.unreadable.first() {
            Some(object) => Err(Box::new(unreadable::unreadable_status(&served_resource.resource, object))),
            None => Ok(page.records),
        }
    }

    /// Checks that no object that may belong to a namespace (empty: to any) is missing because it is unreadable. For a resource
    /// that is not in memory, only damaged keys are known.
    ///
    /// # Errors
    /// Status 500 for the first unreadable object, or if stored states are missing.
    pub async fn check_complete(&self, served_resource: &ServedResource, namespace: &str) -> Result<()> {
        if let Some(why) = self.store.incomplete_reason(&served_resource.storage) {
            return Err(Box::new(unreadable::status(&served_resource.resource, "", "", &why)));
        }
        let may_be_in_namespace = |object: &&Unreadable| namespace.is_empty() || object.may_be_in(namespace);
        let unreadable = match self.state(served_resource).await? {
            CurrentState::Cached(snapshot) => snapshot.unreadable_in(None).find(may_be_in_namespace).cloned(),
            CurrentState::Uncached(_) => {
                let damaged = self.store.damaged_keys(&served_resource.storage).await;
                damaged.map_err(|error| failure::from_store_error(error, 0))?.into_iter().next()
            }
        };
        unreadable.map_or(Ok(()), |object| {
            Err(Box::new(unreadable::unreadable_status(&served_resource.resource, &object)))
        })
    }
}
