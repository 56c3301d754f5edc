//! Lists of states that only the database has: past states, and the current state of a resource that is too large for memory.

use portico_store::{Key, ListAt, Scope, State, StoreError};

use tokio::task::consume_budget;

use super::{MAX_AT_ONCE, Page, Request, compacted_token, each_once, unreached};
use crate::Result;
use crate::failure;
use crate::objects::Objects;
use crate::served::ServedResource;

/// Objects that a page with selectors initially reads of a past state, or past the cache.
///
/// Limit (Storage and watches): the number doubles until the page is full.
const SELECTED_AT_ONCE: usize = 500;

/// Attempts to read the current state when its revision is compacted concurrently.
const READS: usize = 5;

impl Objects {
    /// Page of the current state, read from the database: at this revision, or at a newer one if this one is compacted before it
    /// is read.
    pub(super) async fn list_stored(
        &self,
        served: &ServedResource,
        request: &Request,
        mut revision: i64,
    ) -> Result<Page> {
        if let Some(path) = &request.only {
            return self.only_stored(served, request, path).await;
        }
        for _ in 0..READS {
            match self.read_exactly(scope(served, request), request, revision).await {
                Ok(page) => return Ok(page),
                Err(StoreError::Compacted { .. }) => {}
                Err(error) => return Err(failure::of_read(error, revision)),
            }
            match self.state(served).await? {
                State::Held(snapshot) => return self.page_of(snapshot, request).await,
                State::Stored(newer) => revision = newer,
            }
        }
        Err(failure::of_read(StoreError::Compacted { oldest: revision }, revision))
    }

    /// Page that can contain one object only.
    async fn only_stored(&self, served: &ServedResource, request: &Request, path: &str) -> Result<Page> {
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        let found = self.store.find(&Key::new(&served.storage, namespace, name)).await;
        let found = found.map_err(|error| failure::of_read(error, 0))?;
        let mut page = Page { revision: found.revision, ..Page::default() };
        match found.object {
            Some(Ok(record)) if request.selection.takes(&record) => page.records.push(record),
            Some(Err(object)) => page.unreadable.push(object),
            _ => {}
        }
        Ok(page)
    }

    /// Page of the state at exactly a revision.
    pub(super) async fn list_exactly(
        &self,
        served: &ServedResource,
        request: &Request,
        revision: i64,
    ) -> Result<Page> {
        if let State::Held(snapshot) = self.state(served).await?
            && (snapshot.changed()..=snapshot.revision()).contains(&revision)
        {
            return Ok(Page { revision, ..self.page_of(snapshot, request).await? }.at(request, revision));
        }
        match self.read_exactly(scope(served, request), request, revision).await {
            Ok(page) => Ok(page),
            Err(StoreError::Compacted { .. }) if request.begin.is_some() => Err(compacted_token(request)),
            Err(StoreError::Future { current }) => Err(Box::new(unreached(served, revision, current))),
            Err(error) => Err(failure::of_read(error, revision)),
        }
    }

    /// Reads until a page is full, in parts: other reads can run in between, and objects that do not match are released with
    /// their part. As the number of matching objects is unknown, the size of a part doubles each time, up to [`MAX_AT_ONCE`]: few
    /// reads find rare objects, and few objects are read for a page of frequent ones.
    async fn read_exactly(
        &self,
        scope: Scope,
        request: &Request,
        revision: i64,
    ) -> std::result::Result<Page, StoreError> {
        let everything = request.selection.is_everything();
        let mut chunk = match request.limit {
            Some(limit) if everything => limit,
            Some(limit) => limit.clamp(SELECTED_AT_ONCE, MAX_AT_ONCE),
            None => MAX_AT_ONCE,
        };
        let counted = request.counted && request.limit.is_some();
        let limit = request.limit.unwrap_or(usize::MAX);
        let (mut records, mut unreadable, mut left) = (Vec::new(), Vec::new(), 0);
        let mut after = request.after.clone();
        loop {
            let query = ListAt { scope: scope.clone(), revision, after, limit: Some(chunk), counted };
            let found = self.store.list_at(query).await?;
            after = found.records.last().map(|record| record.key.path().to_owned());
            unreadable.extend(found.unreadable);
            for record in found.records {
                match records.len() < limit {
                    true if request.selection.takes(&record) => records.push(record),
                    true => {}
                    // Upstream also counts objects that do not match: the next page may be empty.
                    false => left += 1,
                }
                consume_budget().await;
            }
            if records.len() >= limit || found.remaining == 0 || after.is_none() {
                let page = Page { records, revision, unreadable: each_once(unreadable), ..Page::default() };
                return Ok(page.followed_by(left + found.remaining, request));
            }
            chunk = chunk.saturating_mul(2).min(MAX_AT_ONCE);
        }
    }
}

fn scope(served: &ServedResource, request: &Request) -> Scope {
    match &request.namespace {
        Some(namespace) => Scope::namespace(&served.storage, namespace),
        None => Scope::all(&served.storage),
    }
}
