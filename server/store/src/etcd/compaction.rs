//! Compacts history in turns with every kube-apiserver of the same etcd: a common key records the last compaction
//! (upstream's `compact.go`), so that one of the servers compacts per interval, up to the revision of one interval before.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::failure::EtcdFailure;
use super::reader::Reader;
use super::wire::{Compare, CompareResult, CompareTarget, Compared, RequestOp, TxnRequest};
use crate::error::StoreError;
use crate::unix_time::{self, subtract};

/// Key of the last compaction, outside of all prefixes.
const COMPACT_KEY: &[u8] = b"compact_rev_key";
/// Maximum number of marks.
const MAX_MARKS: usize = 4_096;

/// State of the compaction turns.
struct CompactTurn {
    /// Version of the key when this process last read it.
    version: i64,
    /// Revision of etcd at that time.
    revision: i64,
}

/// Compaction task.
pub(super) struct Compactor {
    pub(super) reader: Arc<Reader>,
    /// Interval of compactions; zero if other servers compact.
    pub(super) interval: Duration,
    pub(super) marks: Arc<RevisionMarks>,
    pub(super) mark_interval: Duration,
}

/// Revisions by time.
pub(super) struct RevisionMarks {
    marks: Mutex<VecDeque<(i64, i64)>>,
    retention: Duration,
}

impl RevisionMarks {
    pub(super) fn new(retention: Duration) -> Self {
        Self { marks: Mutex::default(), retention }
    }

    fn add(&self, now: i64, revision: i64) {
        let mut marks = self.marks.lock();
        marks.push_back((now, revision));
        let oldest = subtract(now, self.retention);
        while marks.len() > MAX_MARKS || marks.get(1).is_some_and(|(at, _)| *at <= oldest) {
            marks.pop_front();
        }
    }

    /// Returns the newest revision that is at least as old as this time; 0 if none is known.
    pub(super) fn revision_at(&self, time: i64) -> i64 {
        let marks = self.marks.lock();
        let found = marks.iter().rev().find(|(at, _)| *at <= time);
        found.map_or(0, |(_, revision)| *revision)
    }
}

impl Compactor {
    pub(super) async fn run(self: Arc<Self>, closing: CancellationToken) {
        let work = async { tokio::join!(self.compact_periodically(), self.observe()) };
        closing.run_until_cancelled(work).await;
    }

    /// Records the revision, the compaction point, and the size of etcd's database periodically.
    async fn observe(&self) {
        let mut ticks = interval_at(Instant::now() + self.mark_interval, self.mark_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.marks.add(unix_time::now(), self.reader.hub.revision());
            let looked = async {
                self.reader.note_compacted().await?;
                self.reader.metrics.file_bytes.set(self.reader.client.status().await?.db_size);
                Ok::<_, EtcdFailure>(())
            };
            if let Err(failure) = looked.await {
                tracing::debug!(error = failure.log_text(), "cannot query the status of etcd");
            }
        }
    }

    async fn compact_periodically(&self) {
        if self.interval.is_zero() {
            return;
        }
        let mut ticks = interval_at(Instant::now() + self.interval, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut turn = CompactTurn { version: 0, revision: 0 };
        loop {
            ticks.tick().await;
            if let Err(failure) = self.compact_once(&mut turn).await {
                tracing::warn!(error = failure.log_text(), "cannot compact the history, retrying");
            }
        }
    }

    async fn compact_once(&self, turn: &mut CompactTurn) -> Result<(), EtcdFailure> {
        let up_to = turn.revision;
        if self.claim_turn(turn).await? && up_to > 0 {
            match self.reader.client.compact(up_to).await {
                // Another server has compacted further.
                Err(failure) if failure.is_compacted() => {}
                compacted => compacted?,
            }
            tracing::info!(revision = up_to, "etcd history compacted");
        }
        self.reader.note_compacted().await.map(drop)
    }

    /// Returns true if no other server has compacted since this process last read the key; updates the key.
    async fn claim_turn(&self, turn: &mut CompactTurn) -> Result<bool, EtcdFailure> {
        let compare = Compare {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Version.into(),
            key: COMPACT_KEY.to_vec(),
            compared: Some(Compared::Version(turn.version)),
        };
        let value = turn.revision.to_string().into_bytes();
        let response = self
            .reader
            .client
            .txn(TxnRequest {
                compare: vec![compare],
                success: vec![RequestOp::put(COMPACT_KEY.to_vec(), value, 0)],
                failure: vec![RequestOp::get(COMPACT_KEY.to_vec())],
            })
            .await?;
        turn.revision = response.header.unwrap_or_default().revision;
        if response.succeeded {
            turn.version += 1;
            return Ok(true);
        }
        turn.version = response.into_range().first().map_or(0, |found| found.version);
        Ok(false)
    }

    /// Compacts the history before a revision.
    pub(super) async fn compact(&self, until: i64) -> Result<i64, StoreError> {
        let hub = &self.reader.hub;
        let until = until.min(hub.revision());
        if until > hub.compacted() {
            match self.reader.client.compact(until).await {
                Err(failure) if failure.is_compacted() => {}
                compacted => compacted.map_err(EtcdFailure::into_store_error)?,
            }
        }
        let compacted = self.reader.note_compacted().await.map_err(EtcdFailure::into_store_error)?;
        hub.set_compacted(compacted);
        Ok(compacted)
    }
}
