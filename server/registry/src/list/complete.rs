//! Lists for decisions that would be wrong if an object were missing.

use std::sync::Arc;

use portico_store::{Record, State, Unreadable};

use super::Page;
use crate::Result;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::{failure, unreadable};

impl Objects {
    /// Returns the records of a complete list of a namespace (empty: of all) if no object that may belong to it was omitted.
    ///
    /// # Errors
    /// Same errors as [`Objects::check_complete`].
    pub async fn complete(
        &self,
        served: &ServedResource,
        namespace: &str,
        page: Page,
    ) -> Result<Vec<Arc<Record>>> {
        self.check_complete(served, namespace).await?;
        match page.unreadable.first() {
            Some(object) => Err(Box::new(unreadable::of(&served.resource, object))),
            None => Ok(page.records),
        }
    }

    /// Checks that no object that may belong to a namespace (empty: to any) is missing because it is unreadable. For a resource
    /// that is not in memory, only damaged keys are known.
    ///
    /// # Errors
    /// Status 500 for the first unreadable object, or if stored states are missing.
    pub async fn check_complete(&self, served: &ServedResource, namespace: &str) -> Result<()> {
        if let Some(why) = self.store.why_incomplete(&served.storage) {
            return Err(Box::new(unreadable::status(&served.resource, "", "", &why)));
        }
        let may_belong = |object: &&Unreadable| namespace.is_empty() || object.may_be_in(namespace);
        let left_out = match self.state(served).await? {
            State::Held(snapshot) => snapshot.unreadable_in(None).find(may_belong).cloned(),
            State::Stored(_) => {
                let damaged = self.store.damaged_keys(&served.storage).await;
                damaged.map_err(|error| failure::of_read(error, 0))?.into_iter().next()
            }
        };
        left_out.map_or(Ok(()), |object| Err(Box::new(unreadable::of(&served.resource, &object))))
    }
}
