//! List: which objects, at which revision, which page (upstream's `Store.ListPredicate` and the watch cache's reading of revisions).
//!
//! `stored` reads states that are in the database alone, `complete` checks that no object is missing.

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

/// A page of records.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// In key order.
    pub records: Vec<Arc<Record>>,
    /// At which all of them were so; 0 for what is computed.
    pub(crate) revision: i64,
    /// Where the next page begins, empty on the last.
    pub(crate) continue_token: String,
    /// How many remain, when selectors do not hide it.
    pub(crate) remaining: Option<u64>,
    /// What was left out because it cannot be read.
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

/// How many objects are converted at a time, at least, when only some of them are wanted.
const CONVERTED_AT_ONCE: usize = 500;

/// Objects that a list reads or converts at a time.
///
/// Limit (Storage and watches): the next ones are read.
const MAX_AT_ONCE: usize = 10_000;

/// At which state to read.
#[derive(Clone, Copy)]
enum At {
    /// Exactly this revision.
    Exactly(i64),
    /// The newest, with all that is acknowledged.
    Newest,
    /// One that is at least this revision.
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

/// What to read, with the token already decoded.
#[derive(Clone)]
struct Request {
    namespace: Option<String>,
    /// Behind which key the page begins.
    begin: Option<String>,
    /// Behind which key to read: while a page is read in parts it moves on from `begin`.
    after: Option<String>,
    limit: Option<usize>,
    /// Whether the list reports how many follow.
    counted: bool,
    selection: Selection,
    /// The path of the only object that can match, when a selector names it.
    only: Option<String>,
}

impl Request {
    /// All that a selection takes.
    fn of_all(served: &ServedResource, namespace: Option<&str>, selection: Selection) -> Self {
        let only = Self::only(served, namespace, &selection);
        let namespace = namespace.map(str::to_owned);
        Self { namespace, begin: None, after: None, limit: None, counted: false, selection, only }
    }

    /// The path of the only object that a selection can take, when it names it.
    fn only(served: &ServedResource, namespace: Option<&str>, selection: &Selection) -> Option<String> {
        match (selection.only_name(), namespace, served.info.namespaced) {
            (Some(name), None, false) => Some(name.to_owned()),
            (Some(name), Some(namespace), true) => Some(format!("{namespace}/{name}")),
            _ => None,
        }
    }
}

/// 504. Upstream's caches say when to ask again; its storage does not.
fn unreached(served: &ServedResource, wanted: i64, current: i64) -> Status {
    let status = too_large_version(wanted, current);
    if served.info.uncached { status.with_retry_after(0) } else { status }
}

impl Objects {
    /// A page of a resource's objects; an empty namespace is all of them.
    ///
    /// # Errors
    /// 400, 410, 504.
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
        // Upstream's cache ignores the limit at revision 0, with a continue token too.
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

    /// All objects of a state that a selection takes, as they are stored.
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

    /// A page of a state in memory. The objects of a large one are selected on the threads for long work.
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

    /// A state of at least this revision.
    pub(crate) async fn not_older_than(&self, served: &ServedResource, least: i64) -> Result<State> {
        self.reach(served, least).await?;
        match self.store.cached(&served.storage) {
            Some(snapshot) => Ok(State::Held(snapshot)),
            None => self.state(served).await,
        }
    }

    /// Selects when everything has come into the version of the request: in parts, no more of them than fill the page.
    async fn list_converted(&self, served: &ServedResource, mut request: Request, at: At) -> Result<Page> {
        let selection = std::mem::take(&mut request.selection);
        let limit = request.limit;
        request.limit = limit.map(|limit| limit.clamp(CONVERTED_AT_ONCE, MAX_AT_ONCE));
        // All parts are of one state.
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

    /// Waits a moment for a revision that has not been written yet, then answers 504.
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

/// Objects that cannot be read, in their order: what is read from memory names them with each part.
fn each_once(mut unreadable: Vec<Unreadable>) -> Vec<Unreadable> {
    unreadable.sort_by(|a, b| (a.key(), a.revision()).cmp(&(b.key(), b.revision())));
    unreadable.dedup();
    unreadable
}

/// Where to read, and behind which key.
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
    /// Reports that so many objects follow.
    fn followed_by(mut self, left: u64, request: &Request) -> Self {
        self.remaining = (left > 0 && request.selection.is_everything()).then_some(left);
        self.continue_token = match self.records.last() {
            Some(last) if left > 0 => token_behind(last.key.path(), request, Some(self.revision)),
            _ => String::new(),
        };
        self
    }

    /// The same page read at an older revision at which it looked the same.
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

/// 410 with a token that goes on at the same place in the newest state.
fn compacted_token(request: &Request) -> Box<portico_machinery::Status> {
    let mut status = portico_machinery::Status::expired(
        "the continue token is too old for a consistent list: restart the list without a token, or continue with the token in the metadata of this response, which may miss or repeat changes made in between",
    );
    let behind = request.begin.as_deref().unwrap_or_default();
    status.metadata.continue_token = token_behind(behind, request, None);
    Box::new(status)
}
