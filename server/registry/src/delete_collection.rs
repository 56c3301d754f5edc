//! Deletecollection (rule 6.7): a list, and a delete of each; not atomic.

use futures::future::try_join_all;
use portico_machinery::status::Reason;
use portico_store::Record;

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
        for together in page.records.chunks(TOGETHER) {
            let deletions = together.iter().map(|record| self.delete_one(served, record, options));
            try_join_all(deletions).await?;
        }
        Ok(page)
    }

    async fn delete_one(&self, served: &Served, record: &Record, options: &DeleteOptions) -> Result<()> {
        let key = &record.key;
        match self.delete(served, key.namespace(), key.name(), options).await {
            Err(status) if status.reason() != Reason::NotFound => Err(status),
            _ => Ok(()),
        }
    }
}
