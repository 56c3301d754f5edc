//! Reads past events for resuming watches, in bounded pages with limited concurrency.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::events::{self, UnopenedPolicy};
use super::failure::EtcdFailure;
use super::keys::KeyRange;
use super::reader::Reader;
use super::wire::WatchEvent;
use crate::error::StoreError;
use crate::event::Event;
use crate::subscription::history::{History, HistoryPage};
use crate::subscription::selection::Selection;

/// Page of past events that is being read.
struct PageInProgress<'a> {
    selection: &'a Selection,
    until: i64,
    limit: usize,
    max_bytes: usize,
    events: Vec<Arc<Event>>,
    bytes: usize,
    has_more: bool,
}

impl Reader {
    async fn past_events(
        &self,
        mut part: PageInProgress<'_>,
        after: i64,
    ) -> Result<HistoryPage, EtcdFailure> {
        let mut watch = self.client.watch(self.key_range(part.selection), after + 1).await?;
        let mut parts: Vec<WatchEvent> = Vec::new();
        loop {
            let mut response = self.client.with_timeout(watch.next_or_progress()).await?;
            if response.canceled {
                // The caller reads the compaction point of the hub.
                self.hub.compact_reads(response.compact_revision);
                let reason = if response.compact_revision > 0 {
                    "compacted".to_owned()
                } else {
                    response.cancel_reason
                };
                return Err(tonic::Status::unavailable(reason).into());
            }
            let is_progress_notification =
                parts.is_empty() && response.events.is_empty() && !response.created;
            let revision = response.header.unwrap_or_default().revision;
            parts.append(&mut response.events);
            let found = events::take_complete(&mut parts, response.fragment);
            if self.add_events(&mut part, found).await? || is_progress_notification && revision >= part.until
            {
                return Ok(HistoryPage { events: part.events, has_more: part.has_more });
            }
        }
    }

    /// Adds events to a page. Returns true if the page is complete; it contains all events of its last revision.
    async fn add_events(
        &self,
        part: &mut PageInProgress<'_>,
        found: Vec<WatchEvent>,
    ) -> Result<bool, EtcdFailure> {
        for found in found {
            let revision = found.revision();
            if revision > part.until {
                return Ok(true);
            }
            let is_full = part.events.len() >= part.limit || part.bytes >= part.max_bytes;
            let last = part.events.last().map(|event| event.revision());
            if is_full && last.is_some_and(|last| last < revision) {
                part.has_more = true;
                return Ok(true);
            }
            let Some(event) = events::decode_event(self, &found, UnopenedPolicy::Fail).await? else {
                continue;
            };
            if !part.selection.selects(&event) {
                continue;
            }
            part.bytes += event.record.value.stored_bytes();
            part.bytes += event.previous.as_ref().map_or(0, |previous| previous.value.stored_bytes());
            part.events.push(Arc::new(event));
        }
        Ok(false)
    }

    fn key_range(&self, selection: &Selection) -> KeyRange {
        match selection {
            Selection::Scope(scope) => self.keys.range(&scope.resource, scope.namespace.as_deref(), None),
            Selection::Filter(_) => self.keys.all(),
        }
    }
}

impl History for Reader {
    fn events(
        &self,
        selection: Selection,
        after: i64,
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> BoxFuture<'_, Result<HistoryPage, StoreError>> {
        Box::pin(async move {
            // Limits the number of concurrent reads: callers wait here.
            let _permit = self.history_permits.acquire().await.map_err(|_| StoreError::Closed)?;
            let (events, bytes, has_more) = (Vec::new(), 0, false);
            let part =
                PageInProgress { selection: &selection, until, limit, max_bytes, events, bytes, has_more };
            self.past_events(part, after).await.map_err(EtcdFailure::into_store_error)
        })
    }
}
