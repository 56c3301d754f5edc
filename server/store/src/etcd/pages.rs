//! Reads a range in pages, all at one revision, each within the message size limit; and lists the resources.

use super::client::Client;
use super::failure::EtcdFailure;
use super::keys::{EtcdKeys, KeyRange};
use super::wire::{KeyValue, RangeRequest};
use crate::key::Resource;

/// Initial number of keys per page, reduced if their values are large.
const INITIAL_PAGE_KEYS: i64 = 500;

/// Range that is being read in pages.
pub(super) struct Pages<'a> {
    client: &'a Client,
    remaining_range: Option<KeyRange>,
    /// Revision of the pages; 0 before the first page.
    pub(super) revision: i64,
    page_keys: i64,
    /// Number of keys after those that were read.
    pub(super) remaining: i64,
}

impl<'a> Pages<'a> {
    /// Reads a range at a revision; 0 for the newest.
    pub(super) fn new(client: &'a Client, range: KeyRange, revision: i64) -> Self {
        Self { client, remaining_range: Some(range), revision, page_keys: INITIAL_PAGE_KEYS, remaining: 0 }
    }

    /// Returns the next page, of at most this number of keys; `None` after the last one.
    pub(super) async fn next(&mut self, limit: Option<usize>) -> Result<Option<Vec<KeyValue>>, EtcdFailure> {
        let Some((key, range_end)) = self.remaining_range.clone() else { return Ok(None) };
        let response = loop {
            let max_keys = limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
            let request = RangeRequest {
                key: key.clone(),
                range_end: range_end.clone(),
                limit: self.page_keys.min(max_keys),
                revision: self.revision,
                ..RangeRequest::default()
            };
            match self.client.range(request).await {
                Err(failure) if failure.is_response_too_large() && self.page_keys > 1 => self.page_keys /= 2,
                answer => break answer?,
            }
        };
        if self.revision == 0 {
            self.revision = response.header.unwrap_or_default().revision;
        }
        self.remaining = response.count - i64::try_from(response.kvs.len()).unwrap_or(0);
        let last = response.kvs.last().filter(|_| response.more);
        self.remaining_range = last.map(|last| ([&*last.key, b"\0"].concat(), range_end));
        Ok(Some(response.kvs))
    }
}

/// Returns the resources that have objects at a revision (0 for the newest), sorted. Each is found by reading its first key.
pub(super) async fn resources(
    client: &Client,
    keys: &EtcdKeys,
    revision: i64,
) -> Result<Vec<Resource>, EtcdFailure> {
    let (mut key, range_end) = keys.all();
    let mut resources = Vec::new();
    loop {
        let request = RangeRequest {
            key,
            range_end: range_end.clone(),
            limit: 1,
            revision,
            keys_only: true,
            ..RangeRequest::default()
        };
        let response = client.range(request).await?;
        let Some(first) = response.kvs.first() else { break };
        resources.extend(keys.parse(&first.key).map(|key| key.resource().clone()));
        key = keys.after_resource(&first.key);
    }
    resources.sort();
    resources.dedup();
    Ok(resources)
}
