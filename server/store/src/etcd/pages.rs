//! Reads a range in pages, all at one revision, each within the message size limit; and lists the resources.

use super::client::Client;
use super::failure::Failure;
use super::keys::{KeyRange, Keys};
use super::wire::{KeyValue, RangeRequest};
use crate::key::Resource;

/// Initial number of keys per page, reduced if their values are large.
const PART: i64 = 500;

/// Range that is being read in pages.
pub(super) struct Pages<'a> {
    client: &'a Client,
    rest: Option<KeyRange>,
    /// Revision of the pages; 0 before the first page.
    pub(super) revision: i64,
    part: i64,
    /// Number of keys after those that were read.
    pub(super) remaining: i64,
}

impl<'a> Pages<'a> {
    /// Reads a range at a revision; 0 for the newest.
    pub(super) fn new(client: &'a Client, range: KeyRange, revision: i64) -> Self {
        Self { client, rest: Some(range), revision, part: PART, remaining: 0 }
    }

    /// Returns the next page, of at most this number of keys; `None` after the last one.
    pub(super) async fn next(&mut self, most: Option<usize>) -> Result<Option<Vec<KeyValue>>, Failure> {
        let Some((key, range_end)) = self.rest.clone() else { return Ok(None) };
        let answer = loop {
            let most = most.map_or(i64::MAX, |most| i64::try_from(most).unwrap_or(i64::MAX));
            let request = RangeRequest {
                key: key.clone(),
                range_end: range_end.clone(),
                limit: self.part.min(most),
                revision: self.revision,
                ..RangeRequest::default()
            };
            match self.client.range(request).await {
                Err(failure) if failure.is_too_long() && self.part > 1 => self.part /= 2,
                answer => break answer?,
            }
        };
        if self.revision == 0 {
            self.revision = answer.header.unwrap_or_default().revision;
        }
        self.remaining = answer.count - i64::try_from(answer.kvs.len()).unwrap_or(0);
        let last = answer.kvs.last().filter(|_| answer.more);
        self.rest = last.map(|last| ([&*last.key, b"\0"].concat(), range_end));
        Ok(Some(answer.kvs))
    }
}

/// Returns the resources that have objects at a revision (0 for the newest), sorted. Each is found by reading its first key.
pub(super) async fn resources(client: &Client, keys: &Keys, revision: i64) -> Result<Vec<Resource>, Failure> {
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
        let answer = client.range(request).await?;
        let Some(first) = answer.kvs.first() else { break };
        resources.extend(keys.parse(&first.key).map(|key| key.resource().clone()));
        key = keys.beyond(&first.key);
    }
    resources.sort();
    resources.dedup();
    Ok(resources)
}
