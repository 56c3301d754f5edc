//! Reads a range in parts, all as of one revision, each no larger than this process takes; and which resources there are.

use super::client::Client;
use super::failure::Failure;
use super::keys::{KeyRange, Keys};
use super::wire::{KeyValue, RangeRequest};
use crate::key::Resource;

/// Keys that are read at a time, at first: fewer when their values are large.
const PART: i64 = 500;

/// A range that is being read.
pub(super) struct Pages<'a> {
    client: &'a Client,
    rest: Option<KeyRange>,
    /// 0 until the first part has come.
    pub(super) revision: i64,
    part: i64,
    /// How many keys follow after those that were read.
    pub(super) remaining: i64,
}

impl<'a> Pages<'a> {
    /// All of a range as of a revision; 0: the newest.
    pub(super) fn new(client: &'a Client, range: KeyRange, revision: i64) -> Self {
        Self { client, rest: Some(range), revision, part: PART, remaining: 0 }
    }

    /// The next part, of at most so many keys; nothing behind the last one.
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

/// The resources that have objects at a revision (0: the newest), each found by one look at its first key, sorted.
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
