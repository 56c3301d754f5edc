//! Lists of states that only the database has: past states, and the current state of a resource that is too large for memory.

use portico_store::{CurrentState, Key, ListAt, Scope, StoreError};

use tokio::task::consume_budget;

use super::{ListRequest, MAX_AT_ONCE, Page, compacted_token, future_revision_status, sort_and_dedup};
use crate::Result;
use crate::failure;
use crate::objects::Objects;
use crate::served_resource::ServedResource;

/// Objects that a page with selectors initially reads of a past state, or past the cache.
///
/// Limit (Storage and watches): the number doubles until the page is full.
const SELECTED_AT_ONCE: usize = 500;

/// Attempts to read the current state when its revision is compacted concurrently.
const MAX_READS: usize = 5;

impl Objects {
    /// Page of the current state, read from the database: at this revision, or at a newer one if this one is compacted before it
    /// is read.
    pub(super) async fn list_stored(
        &self,
        served_resource: &ServedResource,
        request: &ListRequest,
        mut revision: i64,
    ) -> Result<Page> {
        if let Some(path) = &request.only_path {
            return self.list_single_stored(served_resource, request, path).await;
        }
        for _ in 0..MAX_READS {
            match self.read_exactly(scope(served_resource, request), request, revision).await {
                Ok(page) => return Ok(page),
                Err(StoreError::Compacted { .. }) => {}
                Err(error) => return Err(failure::from_store_error(error, revision)),
            }
            match self.state(served_resource).await? {
                CurrentState::Cached(snapshot) => return self.page_of(snapshot, request).await,
                CurrentState::Uncached(newer) => revision = newer,
            }
        }
        Err(failure::from_store_error(StoreError::Compacted { oldest: revision }, revision))
    }

    /// Page that can contain one object only.
    async fn list_single_stored(
        &self,
        served_resource: &ServedResource,
        request: &ListRequest,
        path: &str,
    ) -> Result<Page> {
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        let found = self.store.find(&Key::new(&served_resource.storage, namespace, name)).await;
        let found = found.map_err(|error| failure::from_store_error(error, 0))?;
        let mut page = Page { revision: found.revision, ..Page::default() };
        match found.object {
            Some(Ok(record)) if request.selection.matches(&record) => page.records.push(record),
            Some(Err(object)) => page.unreadable.push(object),
            _ => {}
        }
        Ok(page)
    }

    /// Page of the state at exactly a revision.
    pub(super) async fn list_exactly(
        &self,
        served_resource: &ServedResource,
        request: &ListRequest,
        revision: i64,
    ) -> Result<Page> {
        if let CurrentState::Cached(snapshot) = self.state(served_resource).await?
            && (snapshot.unchanged_since()..=snapshot.revision()).contains(&revision)
        {
            return Ok(
                Page { revision, ..self.page_of(snapshot, request).await? }.with_revision(request, revision)
            );
        }
        match self.read_exactly(scope(served_resource, request), request, revision).await {
            Ok(page) => Ok(page),
            Err(StoreError::Compacted { .. }) if request.page_start.is_some() => {
                Err(compacted_token(request))
            }
            Err(StoreError::Future { current }) => {
                Err(Box::new(future_revision_status(served_resource, revision, current)))
            }
            Err(error) => Err(failure::from_store_error(error, revision)),
        }
    }

    /// Reads until a page is full, in parts: other reads can run in between, and objects that do not match are released with
    /// their part. As the number of matching objects is unknown, the size of a part doubles each time, up to [`MAX_AT_ONCE`]: few
    /// reads find rare objects, and few objects are read for a page of frequent ones.
    async fn read_exactly(
        &self,
        scope: Scope,
        request: &ListRequest,
        revision: i64,
    ) -> std::result::Result<Page, StoreError> {
        let selects_all = request.selection.matches_all();
        let mut page_size = match request.limit {
            Some(limit) if selects_all => limit,
            Some(limit) => limit.clamp(SELECTED_AT_ONCE, MAX_AT_ONCE),
            None => MAX_AT_ONCE,
        };
        let exact_count = request.reports_remaining && request.limit.is_some();
        let limit = request.limit.unwrap_or(usize::MAX);
        let (mut records, mut unreadable, mut remaining) = (Vec::new(), Vec::new(), 0);
        let mut after = request.after.clone();
        loop {
            let query = ListAt { scope: scope.clone(), revision, after, limit: Some(page_size), exact_count };
            let found = self.store.list_at(query).await?;
            after = found.records.last().map(|record| record.key.path().to_owned());
            unreadable.extend(found.unreadable);
            for record in found.records {
                match records.len() < limit {
                    true if request.selection.matches(&record) => records.push(record),
                    true => {}
                    // Upstream also counts objects that do not match: the next page may be empty.
                    false => remaining += 1,
                }
                consume_budget().await;
            }
            if records.len() >= limit || found.remaining == 0 || after.is_none() {
                let page =
                    Page { records, revision, unreadable: sort_and_dedup(unreadable), ..Page::default() };
                return Ok(page.with_remaining(remaining + found.remaining, request));
            }
            page_size = page_size.saturating_mul(2).min(MAX_AT_ONCE);
        }
    }
}

fn scope(served_resource: &ServedResource, request: &ListRequest) -> Scope {
    match &request.namespace {
        Some(namespace) => Scope::namespace(&served_resource.storage, namespace),
        None => Scope::all(&served_resource.storage),
    }
}
