//! List: selects objects, revision and page (upstream's `Store.ListPredicate` and the revision rules of its watch cache).
//!
//! Module `stored_states` reads states that only the database has; `completeness` checks that no object is missing.

mod complete;
mod stored;

use std::sync::Arc;
use std::time::Duration;

use portico_machinery::Status;
use portico_store::{Record, Snapshot, State, Unreadable};

use crate::Result;
use crate::failure::{self, too_large_version};
use crate::objects::Objects;
use crate::options::{ListOptions, VersionMatch};
use crate::selection::Selection;
use crate::served::ServedResource;
use crate::stored::Stored;
use crate::token::Token;
use crate::typed::Listed;

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

impl From<Page> for Listed {
    fn from(page: Page) -> Self {
        Self {
            items: page.records.into_iter().map(Stored::new).collect(),
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
enum At {
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
struct Request {
    namespace: Option<String>,
    /// Key after which the page starts.
    begin: Option<String>,
    /// Key after which to read next; advances from `page_start` while a page is read in parts.
    after: Option<String>,
    limit: Option<usize>,
    /// True if the list reports how many objects follow.
    counted: bool,
    selection: Selection,
    /// Path of the only object that can match, if a selector names it.
    only: Option<String>,
}

impl Request {
    /// Request for all objects that match a selection.
    fn of_all(served: &ServedResource, namespace: Option<&str>, selection: Selection) -> Self {
        let only = Self::only(served, namespace, &selection);
        let namespace = namespace.map(str::to_owned);
        Self { namespace, begin: None, after: None, limit: None, counted: false, selection, only }
    }

    /// Path of the only object that a selection can match, if a field selector names it.
    fn only(served: &ServedResource, namespace: Option<&str>, selection: &Selection) -> Option<String> {
        match (selection.only_name(), namespace, served.info.namespaced) {
            (Some(name), None, false) => Some(name.to_owned()),
            (Some(name), Some(namespace), true) => Some(format!("{namespace}/{name}")),
            _ => None,
        }
    }
}

/// Status 504. Upstream's watch cache sets `Retry-After`; its storage does not.
fn unreached(served: &ServedResource, wanted: i64, current: i64) -> Status {
    let status = too_large_version(wanted, current);
    if served.info.uncached { status.with_retry_after(0) } else { status }
}

impl Objects {
    /// Lists a page of a resource's objects; an empty namespace selects all namespaces.
    ///
    /// # Errors
    /// Status 400, 410 or 504.
    pub async fn list(
        &self,
        served: &ServedResource,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<Page> {
        served.require("list")?;
        let selection = Selection::new(served, &options.labels, &options.fields)?;
        if let Some(mut records) = served.computed()? {
            records.retain(|record| selection.takes(record));
            return Ok(Page { records, ..Page::default() });
        }
        let namespace = Some(namespace).filter(|n| served.info.namespaced && !n.is_empty());
        let (at, after) = start(options)?;
        // Upstream's watch cache ignores the limit at revision 0, even with a continue token.
        let of_cache = options.resource_version == Some(0) && !served.info.uncached;
        let unlimited = options.limit == 0 || of_cache;
        let only = if after.is_some() { None } else { Request::only(served, namespace, &selection) };
        let begin = after.map(|key| namespace.map_or(key.clone(), |n| format!("{n}/{key}")));
        let request = Request {
            namespace: namespace.map(str::to_owned),
            only,
            after: begin.clone(),
            begin,
            limit: (!unlimited).then_some(options.limit),
            counted: selection.is_everything(),
            selection,
        };
        if served.selects_converted(&request.selection) {
            return self.list_converted(served, request, at).await;
        }
        let mut page = self.list_at(served, &request, at).await?;
        page.records = self.incoming_all(served, page.records).await?;
        Ok(page)
    }

    /// All objects of a state that match a selection, as stored.
    pub(crate) async fn select_all(
        &self,
        served: &ServedResource,
        namespace: Option<&str>,
        selection: Selection,
        state: State,
    ) -> Result<Page> {
        let request = Request::of_all(served, namespace, selection);
        match state {
            State::Held(snapshot) => self.page_of(snapshot, &request).await,
            State::Stored(revision) => self.list_stored(served, &request, revision).await,
        }
    }

    /// Page of a state in memory. The objects of a large state are selected on the threads for long work.
    async fn page_of(&self, snapshot: Snapshot, request: &Request) -> Result<Page> {
        let objects = snapshot.range(request.namespace.as_deref(), request.after.as_deref()).len();
        let is_long = match request.selection.is_everything() {
            true => request.limit.unwrap_or(objects).min(objects) > MAX_INLINE_OBJECTS,
            false => request.only.is_none() && objects > MAX_INLINE_COMPARED,
        };
        let request = request.clone();
        self.compute(is_long, async move { page_of(&snapshot, &request) }).await
    }

    async fn list_at(&self, served: &ServedResource, request: &Request, at: At) -> Result<Page> {
        let state = match at {
            At::Newest => self.state(served).await?,
            At::NotOlderThan(least) => self.not_older_than(served, least).await?,
            At::Exactly(revision) => return self.list_exactly(served, request, revision).await,
        };
        match state {
            State::Held(snapshot) => self.page_of(snapshot, request).await,
            State::Stored(revision) => self.list_stored(served, request, revision).await,
        }
    }

    /// State at this revision or a later one.
    pub(crate) async fn not_older_than(&self, served: &ServedResource, least: i64) -> Result<State> {
        self.reach(served, least).await?;
        match self.store.cached(&served.storage) {
            Some(snapshot) => Ok(State::Held(snapshot)),
            None => self.state(served).await,
        }
    }

    /// Converts objects to the version of the request before it selects them: in parts, only as many as the page needs.
    async fn list_converted(&self, served: &ServedResource, mut request: Request, at: At) -> Result<Page> {
        let selection = std::mem::take(&mut request.selection);
        let limit = request.limit;
        request.limit = limit.map(|limit| limit.clamp(CONVERTED_AT_ONCE, MAX_AT_ONCE));
        // All parts are read from one state.
        let state = match at {
            At::Newest => self.state(served).await?,
            At::NotOlderThan(least) => self.not_older_than(served, least).await?,
            At::Exactly(revision) => State::Stored(revision),
        };
        let revision = state.revision();
        let (mut shown, mut unreadable) = (Vec::new(), Vec::new());
        let left = loop {
            let part = match &state {
                State::Held(snapshot) => self.page_of(snapshot.clone(), &request).await?,
                State::Stored(revision) => self.list_exactly(served, &request, *revision).await?,
            };
            let mut left = part.remaining.unwrap_or_default();
            request.after = part.records.last().map(|record| record.key.path().to_owned());
            unreadable.extend(part.unreadable);
            for record in self.incoming_all(served, part.records).await? {
                match limit.is_some_and(|limit| shown.len() >= limit) {
                    true => left += 1,
                    false if selection.takes(&record) => shown.push(record),
                    false => {}
                }
            }
            if left == 0 || request.after.is_none() || limit.is_some_and(|limit| shown.len() >= limit) {
                break left;
            }
        };
        let page = Page { records: shown, revision, unreadable: each_once(unreadable), ..Page::default() };
        Ok(page.followed_by(left, &Request { selection, limit, ..request }))
    }

    /// Waits briefly for a revision that has not been reached yet; then returns status 504.
    pub(crate) async fn reach(&self, served: &ServedResource, revision: i64) -> Result<()> {
        if revision <= self.store.revision() {
            return Ok(());
        }
        let wait: Duration = self.settings.future_revision_wait;
        match tokio::time::timeout(wait, self.store.wait_for(revision)).await {
            Ok(reached) => reached.map_err(|e| failure::of_read(e, revision)),
            Err(_) => Err(Box::new(unreached(served, revision, self.store.revision()))),
        }
    }
}

/// Unreadable objects in order without duplicates: each part that is read from memory contains all of them.
fn each_once(mut unreadable: Vec<Unreadable>) -> Vec<Unreadable> {
    unreadable.sort_by(|a, b| (a.key(), a.revision()).cmp(&(b.key(), b.revision())));
    unreadable.dedup();
    unreadable
}

/// State to read, and the key after which to start.
fn start(options: &ListOptions) -> Result<(At, Option<String>)> {
    if !options.continue_token.is_empty() {
        let token = Token::decode(&options.continue_token)?;
        let at = token.revision.map_or(At::NotOlderThan(0), At::Exactly);
        return Ok((at, Some(token.after)));
    }
    let at = match (options.resource_version, options.version_match) {
        (None, _) => At::Newest,
        (Some(revision), Some(VersionMatch::Exact)) => At::Exactly(revision),
        (Some(revision), None) if options.limit > 0 && revision > 0 => At::Exactly(revision),
        (Some(revision), _) => At::NotOlderThan(revision),
    };
    Ok((at, None))
}

fn page_of(snapshot: &Snapshot, request: &Request) -> Page {
    if let Some(path) = &request.only {
        let found = snapshot.get_path(path).filter(|r| request.selection.takes(r)).cloned();
        let records = found.into_iter().collect();
        let unreadable = snapshot.unreadable(path).cloned().into_iter().collect();
        return Page { records, revision: snapshot.revision(), unreadable, ..Page::default() };
    }
    let namespace = request.namespace.as_deref();
    let mut range = snapshot.range(namespace, request.after.as_deref());
    let limit = request.limit.unwrap_or(usize::MAX);
    let mut records = Vec::with_capacity(range.len().min(limit));
    let everything = request.selection.is_everything();
    let required = request.selection.signature();
    while records.len() < limit {
        let Some(record) = range.next_matching(required) else { break };
        if everything || request.selection.takes(record) {
            records.push(record.clone());
        }
    }
    let unreadable = snapshot.unreadable_in(namespace).cloned().collect();
    let page = Page { records, revision: snapshot.revision(), unreadable, ..Page::default() };
    page.followed_by(range.len() as u64, request)
}

impl Page {
    /// Sets the continue token and the number of remaining objects if objects follow.
    fn followed_by(mut self, left: u64, request: &Request) -> Self {
        self.remaining = (left > 0 && request.selection.is_everything()).then_some(left);
        self.continue_token = match self.records.last() {
            Some(last) if left > 0 => token_behind(last.key.path(), request, Some(self.revision)),
            _ => String::new(),
        };
        self
    }

    /// Changes the page to an older revision at which it had the same content.
    fn at(mut self, request: &Request, revision: i64) -> Self {
        self.revision = revision;
        if let Some(last) = self.records.last().filter(|_| !self.continue_token.is_empty()) {
            self.continue_token = token_behind(last.key.path(), request, Some(revision));
        }
        self
    }
}

fn token_behind(path: &str, request: &Request, revision: Option<i64>) -> String {
    let after = match &request.namespace {
        Some(namespace) => path.get(namespace.len() + 1..).unwrap_or_default(),
        None => path,
    };
    Token { revision, after: after.to_owned() }.encode()
}

/// Status 410 with a token that continues at the same position in the newest state.
fn compacted_token(request: &Request) -> Box<portico_machinery::Status> {
    let mut status = portico_machinery::Status::expired(
        "the continue token is too old for a consistent list: restart the list without a token, or continue with the token in the metadata of this response, which may miss or repeat changes made in between",
    );
    let behind = request.begin.as_deref().unwrap_or_default();
    status.metadata.continue_token = token_behind(behind, request, None);
    Box::new(status)
}
