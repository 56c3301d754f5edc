//! Deletecollection (rule 6.7): a list, and a delete of each; not atomic.

use futures::TryStreamExt;
use portico_machinery::status::Reason;

use crate::Result;
use crate::list::Page;
use crate::options::{DeleteOptions, ListOptions};
use crate::registry::Inner;
use crate::served::Served;

/// How many deletions of one request are under way together: enough to share a commit.
const TOGETHER: usize = 64;

impl Inner {
    /// What was there, as it was before.
    pub(crate) async fn delete_collection(
        &self,
        served: &Served,
        namespace: &str,
        select: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Page> {
        served.require("deletecollection")?;
        let page = self.list(served, namespace, select).await?;
        futures::stream::iter(page.records.iter().map(Ok::<_, Box<portico_machinery::Status>>))
            .map_ok(|record| async move {
                let key = &record.key;
                match self.delete(served, key.namespace(), key.name(), options).await {
                    Err(status) if status.reason() != Reason::NotFound => Err(status),
                    _ => Ok(()),
                }
            })
            .try_buffer_unordered(TOGETHER)
            .try_collect::<()>()
            .await?;
        Ok(page)
    }
}
