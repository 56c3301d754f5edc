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
pub(crate) struct KeyRange {
    /// Namespace with its trailing '/'; `None` for all.
    pub(crate) namespace: Option<String>,
    /// Exclusive lower bound: namespace and name; within `namespace` only the name is compared.
    pub(crate) after: (String, String),
}

impl KeyRange {
    /// Returns the range of a query; `None` if it is empty. `column` converts a text to its form in a column.
    pub(crate) fn new(query: &ListAt, column: impl Fn(&str) -> Cow<'_, str>) -> Option<Self> {
        let (namespace, name) = split_path(query.after.as_deref().unwrap_or_default());
        let (namespace, name) = (column(namespace).into_owned(), column(name).into_owned());
        let Some(prefix) = query.scope.namespace.as_ref().map(|name| format!("{}/", column(name))) else {
            return Some(Self { namespace: None, after: (namespace, name) });
        };
        let after = match namespace.cmp(&prefix) {
            Ordering::Less => String::new(),
            Ordering::Equal => name,
            Ordering::Greater => return None,
        };
        Some(Self { after: (prefix.clone(), after), namespace: Some(prefix) })
    }
}

/// Returns the page from memory if the resource has not changed since the revision of the query.
pub(crate) fn page_from_memory(hub: &Hub, slot: &Slot, query: &ListAt) -> Result<Option<Page>, StoreError> {
    hub.check_readable(query.revision)?;
    let snapshot =
        slot.snapshot(hub.revision()).filter(|snapshot| snapshot.unchanged_since() <= query.revision);
    Ok(snapshot.map(|snapshot| Page::from_snapshot(&snapshot, query)))
}

/// Returns the number of objects after a full page that was read from `rows_read` rows. `count` counts the rows after the page,
/// at most as many as its argument.
pub(crate) async fn remaining(
    cache: &Cache,
    slot: &Slot,
    query: &ListAt,
    page: &Page,
    rows_read: usize,
    count: impl AsyncFnOnce(Option<i64>) -> Result<i64, StoreError>,
) -> Result<u64, StoreError> {
    if !query.exact_count {
        return Ok(u64::try_from(count(Some(1)).await?).unwrap_or(0));
    }
    let (namespace, revision) = (query.scope.namespace.as_deref().unwrap_or_default(), query.revision);
    let rows_read = i64::try_from(rows_read).unwrap_or(i64::MAX);
    let remaining = match slot.count_after(namespace, revision, query.after.as_deref()) {
        Some(following) => following - rows_read,
        None => {
            let pending_count = match &query.after {
                None => cache.begin_count(slot, namespace, Some(revision)),
                Some(_) => None,
            };
            let following = count(None).await?;
            if let Some(pending_count) = pending_count {
                pending_count.complete(following + rows_read);
            }
            following
        }
    };
    // An unreadable object may follow the last readable one.
    if let (Some(last), true) = (page.records.last(), page.unreadable.is_empty()) {
        slot.record_page_end(namespace, revision, last.key.path(), remaining);
    }
    Ok(u64::try_from(remaining).unwrap_or(0))
}
