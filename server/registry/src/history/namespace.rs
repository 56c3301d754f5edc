//! Start of the history of a namespace: an earlier namespace with the same name may have belonged to another tenant.

use portico_machinery::{GroupResource, Status};
use portico_store::{Key, PastQuery};

use crate::Result;
use crate::failure;
use crate::registry::Registry;

/// Number of states of a namespace that are read at a time.
const STATES: usize = 100;

impl Registry {
    /// Revision at which the current namespace was created; that of its oldest stored state if the creation is no longer stored.
    ///
    /// # Errors
    /// Status 404 if there is no such namespace, 503 if the store cannot be read.
    pub async fn namespace_history_start(&self, namespace: &str) -> Result<i64> {
        let namespaces = GroupResource::new("", "namespaces");
        let served_resource = self.objects().served_resource(&namespaces)?;
        let Some(current) = self.objects().read(&served_resource, "", namespace).await? else {
            return Err(Box::new(Status::not_found(&namespaces, namespace)));
        };
        let (uid, mut start) = (current.value.uid(), current.revision);
        loop {
            let key = Key::new(&served_resource.storage, "", namespace);
            let query = PastQuery { key, before: Some(start), limit: STATES };
            let past =
                self.store().past_states(query).await.map_err(|error| failure::from_store_error(error, 0))?;
            for state in past.states {
                match state.state {
                    Ok(record) if record.value.uid() == uid => start = record.revision,
                    _ => return Ok(start),
                }
            }
            if !past.has_more {
                return Ok(start);
            }
        }
    }
}
