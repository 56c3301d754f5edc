//! Deletecollection (upstream's `Store.DeleteCollection`): lists the objects and deletes each one; not atomic.

use std::sync::Arc;

use futures::future::join_all;
use portico_machinery::status::Reason;
use portico_store::Record;

use crate::Result;
use crate::admission::{Attributes, Options};
use crate::list::Page;
use crate::options::{DeleteOptions, ListOptions};
use crate::served_resource::ServedResource;
use crate::verb_types::{Context, ObjectPart, ObjectPath};
use crate::verbs::Verbs;

/// Concurrent deletions of one request, enough to share commits.
const CONCURRENT_DELETIONS: usize = 64;

impl Verbs {
    /// Selects the objects to delete.
    pub(crate) async fn select_collection(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        select: &ListOptions,
    ) -> Result<Page> {
        served_resource.require_verb("deletecollection")?;
        self.objects.list(served_resource, namespace, select).await
    }

    /// Deletes these objects of a collection. Returns the revision of the last deletion, 0 if there was none.
    ///
    /// # Errors
    /// The first failure other than 404, returned after the concurrent deletions have ended.
    pub(crate) async fn delete_collection(
        &self,
        context: &Context,
        served_resource: &ServedResource,
        namespace: &str,
        records: &[Arc<Record>],
        options: &DeleteOptions,
    ) -> Result<i64> {
        // Upstream's attributes of a collection delete have no name, not even for the individual objects.
        let path = ObjectPath { part: ObjectPart::Main, namespace, name: "" };
        let attributes = Attributes::new(context, served_resource, path, Options::Delete(options));
        let mut last = 0;
        for chunk in records.chunks(CONCURRENT_DELETIONS) {
            let deletions = chunk.iter().map(|record| self.delete_one(attributes, record, options));
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
        let deleted = self.delete_with_attributes(
            attributes.served_resource,
            key.namespace(),
            key.name(),
            options,
            Some(attributes),
        );
        match deleted.await {
            Ok(deleted) => Ok(deleted.stored.revision()),
            Err(status) if status.reason() == Reason::NotFound => Ok(0),
            Err(status) => Err(status),
        }
    }
}
