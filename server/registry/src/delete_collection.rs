//! Deletecollection (upstream's `Store.DeleteCollection`): lists the objects and deletes each one; not atomic.

use std::sync::Arc;

use futures::future::join_all;
use portico_machinery::status::Reason;
use portico_store::Record;

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::list::Page;
use crate::options::{DeleteOptions, ListOptions};
use crate::served::ServedResource;
use crate::typed::{Context, Part, Place};
use crate::verbs::Verbs;

/// Concurrent deletions of one request, enough to share commits.
const TOGETHER: usize = 64;

impl Verbs {
    /// Selects the objects to delete.
    pub(crate) async fn select_collection(
        &self,
        served: &ServedResource,
        namespace: &str,
        select: &ListOptions,
    ) -> Result<Page> {
        served.require("deletecollection")?;
        self.objects.list(served, namespace, select).await
    }

    /// Deletes these objects of a collection. Returns the revision of the last deletion, 0 if there was none.
    ///
    /// # Errors
    /// The first failure other than 404, returned after the concurrent deletions have ended.
    pub(crate) async fn delete_collection(
        &self,
        context: &Context,
        served: &ServedResource,
        namespace: &str,
        records: &[Arc<Record>],
        options: &DeleteOptions,
    ) -> Result<i64> {
        // Upstream's attributes of a collection delete have no name, not even for the individual objects.
        let place = Place { part: Part::Main, namespace, name: "" };
        let attributes = Attributes::new(context, served, place, Options::Delete(options));
        let mut last = 0;
        for together in records.chunks(TOGETHER) {
            let deletions = together.iter().map(|record| self.delete_one(attributes, record, options));
            for revision in join_all(deletions).await {
                last = last.max(revision?);
            }
        }
        Ok(last)
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
