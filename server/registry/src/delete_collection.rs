//! Deletecollection (upstream's `Store.DeleteCollection`): a list, and a delete of each; not atomic.

use futures::future::try_join_all;
use portico_machinery::status::Reason;
use portico_store::Record;

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::list::Page;
use crate::options::{DeleteOptions, ListOptions};
use crate::served::ServedResource;
use crate::typed::{Context, Part, Place};
use crate::verbs::Verbs;

/// How many deletions of one request are under way together: enough to share a commit.
const TOGETHER: usize = 64;

impl Verbs {
    /// What was there, as it was before, and the revision of the last deletion (0 when there was none).
    pub(crate) async fn delete_collection(
        &self,
        context: &Context,
        served: &ServedResource,
        namespace: &str,
        select: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<(Page, i64)> {
        served.require("deletecollection")?;
        // Upstream names no object to those who are asked about a collection, nor about any of its objects.
        let place = Place { part: Part::Main, namespace, name: "" };
        let attributes = Attributes::new(context, served, place, Options::Delete(options));
        let page = self.objects.list(served, namespace, select).await?;
        let mut last = 0;
        for together in page.records.chunks(TOGETHER) {
            let deletions = together.iter().map(|record| self.delete_one(attributes, record, options));
            last = try_join_all(deletions).await?.into_iter().fold(last, i64::max);
        }
        Ok((page, last))
    }

    async fn delete_one(
        &self,
        attributes: Attributes<'_>,
        record: &Record,
        options: &DeleteOptions,
    ) -> Result<i64> {
        let key = &record.key;
        let deleted =
            self.delete_asking(attributes.served, key.namespace(), key.name(), options, Some(attributes));
        match deleted.await {
            Ok(deleted) => Ok(deleted.stored.revision()),
            Err(status) if status.reason() == Reason::NotFound => Ok(0),
            Err(status) => Err(status),
        }
    }
}
