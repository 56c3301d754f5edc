//! Lists of states that are in the database alone: past ones, and the current one of a resource that memory has no room for.

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

/// How often the current state is read whose history is forgotten meanwhile.
const READS: usize = 5;

impl Objects {
    /// A page of the current state, which is in the database alone: of this revision, or of a newer one when that is forgotten before
    /// it is read.
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

    /// A page that can have one object alone.
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

    /// A page of the state of exactly a revision.
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

    /// Reads until a page is full, in parts: other reads have their turn between them, and what selectors leave out is held no longer
    /// than its part. What that is is not known before reading: more is read at a time then, and twice as much each time, up to
    /// [`MAX_AT_ONCE`], so that few reads find what is rare, and few objects are read for a page of what is not.
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
                    // Upstream counts what no selector takes, too: the page that it leads to may be empty.
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
