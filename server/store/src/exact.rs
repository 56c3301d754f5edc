//! Shared parts of reads at an exact revision: key ranges in terms of columns, pages from memory, counts.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::cache::{Cache, Slot};
use crate::error::StoreError;
use crate::hub::Hub;
use crate::key::split_path;
use crate::store::{ListAt, Page};

/// Maximum bytes of past states of one object that are read at once, not counting the last state.
pub(crate) const MAX_PAST_BYTES: usize = 8 << 20;

/// Range of keys of a resource.
pub(crate) struct Range {
    /// Namespace with its trailing '/'; `None` for all.
    pub(crate) namespace: Option<String>,
    /// Exclusive lower bound: namespace and name; within `namespace` only the name is compared.
    pub(crate) after: (String, String),
}

impl Range {
    /// Returns the range of a query; `None` if it is empty. `column` converts a text to its form in a column.
    pub(crate) fn new(query: &ListAt, column: impl Fn(&str) -> Cow<'_, str>) -> Option<Self> {
        let (namespace, name) = split_path(query.after.as_deref().unwrap_or_default());
        let (namespace, name) = (column(namespace).into_owned(), column(name).into_owned());
        let Some(only) = query.scope.namespace.as_ref().map(|only| format!("{}/", column(only))) else {
            return Some(Self { namespace: None, after: (namespace, name) });
        };
        let after = match namespace.cmp(&only) {
            Ordering::Less => String::new(),
            Ordering::Equal => name,
            Ordering::Greater => return None,
        };
        Some(Self { after: (only.clone(), after), namespace: Some(only) })
    }
}

/// Returns the page from memory if the resource has not changed since the revision of the query.
pub(crate) fn from_memory(hub: &Hub, slot: &Slot, query: &ListAt) -> Result<Option<Page>, StoreError> {
    hub.check(query.revision)?;
    let snapshot = slot.snapshot(hub.revision()).filter(|snapshot| snapshot.changed() <= query.revision);
    Ok(snapshot.map(|snapshot| Page::of(&snapshot, query)))
}

/// Returns the number of objects after a full page that was read from `seen` rows. `count` counts the rows after the page, at
/// most as many as its argument.
pub(crate) async fn remaining(
    cache: &Cache,
    slot: &Slot,
    query: &ListAt,
    page: &Page,
    seen: usize,
    count: impl AsyncFnOnce(Option<i64>) -> Result<i64, StoreError>,
) -> Result<u64, StoreError> {
    if !query.counted {
        return Ok(u64::try_from(count(Some(1)).await?).unwrap_or(0));
    }
    let (namespace, revision) = (query.scope.namespace.as_deref().unwrap_or_default(), query.revision);
    let seen = i64::try_from(seen).unwrap_or(i64::MAX);
    let remaining = match slot.following(namespace, revision, query.after.as_deref()) {
        Some(there) => there - seen,
        None => {
            let begun = match &query.after {
                None => cache.begin_count(slot, namespace, Some(revision)),
                Some(_) => None,
            };
            let behind = count(None).await?;
            if let Some(begun) = begun {
                begun.end(behind + seen);
            }
            behind
        }
    };
    // An unreadable object may follow the last readable one.
    if let (Some(last), true) = (page.records.last(), page.unreadable.is_empty()) {
        slot.page_ended(namespace, revision, last.key.path(), remaining);
    }
    Ok(u64::try_from(remaining).unwrap_or(0))
}
