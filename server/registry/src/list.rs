//! List: selects objects, revision and page (upstream's `Store.ListPredicate` and the revision rules of its watch cache).
//!
//! Module `stored_states` reads states that only the database has; `completeness` checks that no object is missing.

mod completeness;
mod stored_states;

use std::sync::Arc;
use std::time::Duration;

use portico_machinery::Status;
use portico_store::{CurrentState, Record, Snapshot, Unreadable};

use crate::Result;
use crate::failure::{self, too_large_version};
use crate::objects::Objects;
use crate::options::{ListOptions, VersionMatch};
use crate::selection::Selection;
use crate::served_resource::ServedResource;
use crate::stored_object::StoredObject;
use crate::token::Token;
use crate::verb_types::ListResult;

/// Page of records.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Records in key order.
    pub records: Vec<Arc<Record>>,
    /// Revision of all records; 0 for computed kinds.
    pub(crate) revision: i64,
    /// Position at which the next page starts, empty on the last page.
    pub(crate) continue_token: String,
    /// Number of remaining objects, unless selectors apply.
    pub(crate) remaining: Option<u64>,
    /// Objects that were omitted because they cannot be read.
    pub unreadable: Vec<Unreadable>,
}

impl From<Page> for ListResult {
    fn from(page: Page) -> Self {
        Self {
            items: page.records.into_iter().map(StoredObject::new).collect(),
            revision: page.revision,
            continue_token: page.continue_token,
            remaining: page.remaining,
            unreadable: page.unreadable.len(),
        }
    }
}

/// Minimum number of objects that are converted at a time when only a part of them is needed.
const CONVERTED_AT_ONCE: usize = 500;

/// Objects that a list reads or converts at a time.
///
/// Limit (Storage and watches): the next ones are read.
const MAX_AT_ONCE: usize = 10_000;

/// State that a list reads.
#[derive(Clone, Copy)]
enum ReadAt {
    /// State at exactly this revision.
    Exactly(i64),
    /// Newest state, including all acknowledged writes.
    Newest,
    /// State at this revision or a later one.
    NotOlderThan(i64),
}

/// Objects that a serving thread adds to a list.
///
/// About a millisecond of work.
///
/// Limit (Requests): the threads for long work build the list.
const MAX_INLINE_OBJECTS: usize = 10_000;
/// Objects that a serving thread compares with a selector.
///
/// Limit (Requests): the threads for long work compare them.
const MAX_INLINE_COMPARED: usize = 2_000;

/// Parameters of a list, with the continue token decoded.
#[derive(Clone)]
struct ListRequest {
    namespace: Option<String>,
    /// Key after which the page starts.
    page_start: Option<String>,
    /// Key after which to read next; advances from `page_start` while a page is read in parts.
    after: Option<String>,
    limit: Option<usize>,
    /// True if the list reports how many objects follow.
    reports_remaining: bool,
    selection: Selection,
    /// Path of the only object that can match, if a selector names it.
    only_path: Option<String>,
}

impl ListRequest {
    /// Request for all objects that match a selection.
    fn of_all(served_resource: &ServedResource, namespace: Option<&str>, selection: Selection) -> Self {
        let only_path = Self::only_path(served_resource, namespace, &selection);
        let namespace = namespace.map(str::to_owned);
        Self {
            namespace,
            page_start: None,
            after: None,
            limit: None,
            reports_remaining: false,
            selection,
            only_path,
        }
    }

    /// Path of the only object that a selection can match, if a field selector names it.
    fn only_path(
        served_resource: &ServedResource,
        namespace: Option<&str>,
        selection: &Selection,
    ) -> Option<String> {
        match (selection.only_name(), namespace, served_resource.info.namespaced) {
            (Some(name), None, false) => Some(name.to_owned()),
            (Some(name), Some(namespace), true) => Some(format!("{namespace}/{name}")),
            _ => None,
        }
    }
}

/// Status 504. Upstream's watch cache sets `Retry-After`; its storage does not.
fn future_revision_status(served_resource: &ServedResource, requested: i64, current: i64) -> Status {
    let status = too_large_version(requested, current);
    if served_resource.info.uncached { status.with_retry_after(0) } else { status }
}

impl Objects {
    /// Lists a page of a resource's objects; an empty namespace selects all namespaces.
    ///
    /// # Errors
    /// Status 400, 410 or 504.
    pub async fn list(
        &self,
        served_resource: &ServedResource,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<Page> {
        served_resource.require_verb("list")?;
        let selection = Selection::new(served_resource, &options.labels, &options.fields)?;
        if let Some(mut records) = served_resource.computed()? {
            records.retain(|record| selection.matches(record));
            return Ok(Page { records, ..Page::default() });
        }
        let namespace = Some(namespace).filter(|n| served_resource.info.namespaced && !n.is_empty());
        let (read_at, after) = read_position(options)?;
        // Upstream's watch cache ignores the limit at revision 0, even with a continue token.
        let allows_cached = options.resource_version == Some(0) && !served_resource.info.uncached;
        let unlimited = options.limit == 0 || allows_cached;
        let only_path = if after.is_some() {
            None
        } else {
            ListRequest::only_path(served_resource, namespace, &selection)
        };
        let page_start = after.map(|key| namespace.map_or(key.clone(), |n| format!("{n}/{key}")));
        let request = ListRequest {
            namespace: namespace.map(str::to_owned),
            only_path,
            after: page_start.clone(),
            page_start,
            limit: (!unlimited).then_some(options.limit),
            reports_remaining: selection.matches_all(),
            selection,
        };
        if served_resource.selects_after_conversion(&request.selection) {
            return self.list_converted(served_resource, request, read_at).await;
        }
        let mut page = self.list_at(served_resource, &request, read_at).await?;
        page.records = self.convert_all_for_request(served_resource, page.records).await?;
        Ok(page)
    }

    /// All objects of a state that match a selection, as stored.
    pub(crate) async fn select_all(
        &self,
        served_resource: &ServedResource,
        namespace: Option<&str>,
        selection: Selection,
        state: CurrentState,
    ) -> Result<Page> {
        let request = ListRequest::of_all(served_resource, namespace, selection);
        match state {
            CurrentState::Cached(snapshot) => self.page_of(snapshot, &request).await,
            CurrentState::Uncached(revision) => self.list_stored(served_resource, &request, revision).await,
        }
    }

    /// Page of a state in memory. The objects of a large state are selected on the threads for long work.
    async fn page_of(&self, snapshot: Snapshot, request: &ListRequest) -> Result<Page> {
        let objects = snapshot.range(request.namespace.as_deref(), request.after.as_deref()).len();
        let is_long = match request.selection.matches_all() {
            true => request.limit.unwrap_or(objects).min(objects) > MAX_INLINE_OBJECTS,
            false => request.only_path.is_none() && objects > MAX_INLINE_COMPARED,
        };
        let request = request.clone();
        self.compute(is_long, async move { page_of(&snapshot, &request) }).await
    }

    async fn list_at(
        &self,
        served_resource: &ServedResource,
        request: &ListRequest,
        read_at: ReadAt,
    ) -> Result<Page> {
        let state = match read_at {
            ReadAt::Newest => self.state(served_resource).await?,
            ReadAt::NotOlderThan(min_revision) => {
                self.state_not_older_than(served_resource, min_revision).await?
            }
            ReadAt::Exactly(revision) => return self.list_exactly(served_resource, request, revision).await,
        };
        match state {
            CurrentState::Cached(snapshot) => self.page_of(snapshot, request).await,
            CurrentState::Uncached(revision) => self.list_stored(served_resource, request, revision).await,
        }
    }

    /// State at this revision or a later one.
    pub(crate) async fn state_not_older_than(
        &self,
        served_resource: &ServedResource,
        min_revision: i64,
    ) -> Result<CurrentState> {
        self.wait_for_revision(served_resource, min_revision).await?;
        match self.store.cached_snapshot(&served_resource.storage) {
            Some(snapshot) => Ok(CurrentState::Cached(snapshot)),
            None => self.state(served_resource).await,
        }
    }

    /// Converts objects to the version of the request before it selects them: in parts, only as many as the page needs.
    async fn list_converted(
        &self,
        served_resource: &ServedResource,
        mut request: ListRequest,
        read_at: ReadAt,
    ) -> Result<Page> {
        let selection = std::mem::take(&mut request.selection);
        let limit = request.limit;
        request.limit = limit.map(|limit| limit.clamp(CONVERTED_AT_ONCE, MAX_AT_ONCE));
        // All parts are read from one state.
        let state = match read_at {
            ReadAt::Newest => self.state(served_resource).await?,
            ReadAt::NotOlderThan(min_revision) => {
                self.state_not_older_than(served_resource, min_revision).await?
            }
            ReadAt::Exactly(revision) => CurrentState::Uncached(revision),
        };
        let revision = state.revision();
        let (mut selected, mut unreadable) = (Vec::new(), Vec::new());
        let remaining = loop {
            let part = match &state {
                CurrentState::Cached(snapshot) => self.page_of(snapshot.clone(), &request).await?,
                CurrentState::Uncached(revision) => {
                    self.list_exactly(served_resource, &request, *revision).await?
                }
            };
            let mut remaining = part.remaining.unwrap_or_default();
            request.after = part.records.last().map(|record| record.key.path().to_owned());
            unreadable.extend(part.unreadable);
            for record in self.convert_all_for_request(served_resource, part.records).await? {
                match limit.is_some_and(|limit| selected.len() >= limit) {
                    true => remaining += 1,
                    false if selection.matches(&record) => selected.push(record),
                    false => {}
                }
            }
            if remaining == 0 || request.after.is_none() || limit.is_some_and(|limit| selected.len() >= limit)
            {
                break remaining;
            }
        };
        let page =
            Page { records: selected, revision, unreadable: sort_and_dedup(unreadable), ..Page::default() };
        Ok(page.with_remaining(remaining, &ListRequest { selection, limit, ..request }))
    }

    /// Waits briefly for a revision that has not been reached yet; then returns status 504.
    pub(crate) async fn wait_for_revision(
        &self,
        served_resource: &ServedResource,
        revision: i64,
    ) -> Result<()> {
        if revision <= self.store.revision() {
            return Ok(());
        }
        let wait: Duration = self.settings.future_revision_wait;
        match tokio::time::timeout(wait, self.store.wait_for_revision(revision)).await {
            Ok(reached) => reached.map_err(|e| failure::from_store_error(e, revision)),
            Err(_) => Err(Box::new(future_revision_status(served_resource, revision, self.store.revision()))),
        }
    }
}

/// Unreadable objects in order without duplicates: each part that is read from memory contains all of them.
fn sort_and_dedup(mut unreadable: Vec<Unreadable>) -> Vec<Unreadable> {
    unreadable.sort_by(|a, b| (a.key(), a.revision()).cmp(&(b.key(), b.revision())));
    unreadable.dedup();
    unreadable
}

/// State to read, and the key after which to start.
fn read_position(options: &ListOptions) -> Result<(ReadAt, Option<String>)> {
    if !options.continue_token.is_empty() {
        let token = Token::decode(&options.continue_token)?;
        let read_at = token.revision.map_or(ReadAt::NotOlderThan(0), ReadAt::Exactly);
        return Ok((read_at, Some(token.after)));
    }
    let read_at = match (options.resource_version, options.version_match) {
        (None, _) => ReadAt::Newest,
        (Some(revision), Some(VersionMatch::Exact)) => ReadAt::Exactly(revision),
        (Some(revision), None) if options.limit > 0 && revision > 0 => ReadAt::Exactly(revision),
        (Some(revision), _) => ReadAt::NotOlderThan(revision),
    };
    Ok((read_at, None))
}

fn page_of(snapshot: &Snapshot, request: &ListRequest) -> Page {
    if let Some(path) = &request.only_path {
        let found = snapshot.get_path(path).filter(|r| request.selection.matches(r)).cloned();
        let records = found.into_iter().collect();
        let unreadable = snapshot.unreadable(path).cloned().into_iter().collect();
        return Page { records, revision: snapshot.revision(), unreadable, ..Page::default() };
    }
    let namespace = request.namespace.as_deref();
    let mut range = snapshot.range(namespace, request.after.as_deref());
    let limit = request.limit.unwrap_or(usize::MAX);
    let mut records = Vec::with_capacity(range.len().min(limit));
    let selects_all = request.selection.matches_all();
    let required = request.selection.signature();
    while records.len() < limit {
        let Some(record) = range.next_matching(required) else { break };
        if selects_all || request.selection.matches(record) {
            records.push(record.clone());
        }
    }
    let unreadable = snapshot.unreadable_in(namespace).cloned().collect();
    let page = Page { records, revision: snapshot.revision(), unreadable, ..Page::default() };
    page.with_remaining(range.len() as u64, request)
}

impl Page {
    /// Sets the continue token and the number of remaining objects if objects follow.
    fn with_remaining(mut self, remaining: u64, request: &ListRequest) -> Self {
        self.remaining = (remaining > 0 && request.selection.matches_all()).then_some(remaining);
        self.continue_token = match self.records.last() {
            Some(last) if remaining > 0 => token_after(last.key.path(), request, Some(self.revision)),
            _ => String::new(),
        };
        self
    }

    /// Changes the page to an older revision at which it had the same content.
    fn with_revision(mut self, request: &ListRequest, revision: i64) -> Self {
        self.revision = revision;
        if let Some(last) = self.records.last().filter(|_| !self.continue_token.is_empty()) {
            self.continue_token = token_after(last.key.path(), request, Some(revision));
        }
        self
    }
}

fn token_after(path: &str, request: &ListRequest, revision: Option<i64>) -> String {
    let after = match &request.namespace {
        Some(namespace) => path.get(namespace.len() + 1..).unwrap_or_default(),
        None => path,
    };
    Token { revision, after: after.to_owned() }.encode()
}

/// Status 410 with a token that continues at the same position in the newest state.
fn compacted_token(request: &ListRequest) -> Box<portico_machinery::Status> {
    let mut status = portico_machinery::Status::expired(
        "the continue token is too old for a consistent list: restart the list without a token, or continue with the token in the metadata of this response, which may miss or repeat changes made in between",
    );
    let page_start = request.page_start.as_deref().unwrap_or_default();
    status.metadata.continue_token = token_after(page_start, request, None);
    Box::new(status)
}
