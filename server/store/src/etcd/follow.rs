//! Follows all writes, including those of this process: one watch of all objects, in the order of etcd's
//! revisions, feeds the cache, the owner index and the subscriptions.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Duration, Instant, MissedTickBehavior, interval, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::client::{PROGRESS_INTERVAL, WatchStream};
use super::events::{self, UnopenedPolicy};
use super::failure::{EtcdFailure, FatalError};
use super::open::{self, RETRY_DELAY};
use super::reader::Reader;
use super::wire::{RangeRequest, WatchEvent, WatchResponse};
use crate::identity::Identity;
use crate::outage_log::OutageLog;
use crate::publish::Publisher;
use crate::read_only;
use crate::subscription::selection::Batch;

/// Interval of checks of a watch. If it was silent since the last check, its progress is requested.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time without responses after which the watch is moved to another member.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Time without progress after which the watch is moved, although etcd is known to have later revisions.
const LAG_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval at which an unavailable key service is called again.
pub(super) const UNREADABLE_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Last published change. If etcd no longer has it, commits were lost.
struct Tail {
    etcd_key: Vec<u8>,
    revision: i64,
    is_deleted: bool,
}

/// Task that follows etcd.
pub(super) struct Follower {
    pub(super) reader: Arc<Reader>,
    pub(super) publisher: Publisher,
    pub(super) identity: Identity,
    pub(super) cluster_id: u64,
    /// Revision for which callers wait.
    pub(super) wanted_revision: watch::Receiver<i64>,
    pub(super) progress: FollowProgress,
    /// Cancelled when the writer has ended.
    pub(super) closing: CancellationToken,
}

/// Progress of the follower.
pub(super) struct FollowProgress {
    /// Revision up to which everything is published.
    revision: i64,
    tail: Option<Tail>,
    /// Received events of an incomplete response.
    parts: Vec<WatchEvent>,
    /// True if a published object cannot be opened.
    has_unopened: bool,
}

/// Liveness of a watch.
struct WatchLiveness {
    received: Instant,
    /// Last revision of the watch, and the time since which it has not advanced although a caller waits.
    revision: i64,
    stalled_since: Instant,
}

impl WatchLiveness {
    fn at(revision: i64) -> Self {
        Self { received: Instant::now(), revision, stalled_since: Instant::now() }
    }

    /// Fails if the watch is silent or lags.
    fn check(&mut self, revision: i64, is_waited_for: bool) -> Result<(), EtcdFailure> {
        if !is_waited_for || revision > self.revision {
            (self.revision, self.stalled_since) = (revision, Instant::now());
        }
        let is_stalled =
            self.received.elapsed() >= SILENCE_TIMEOUT || self.stalled_since.elapsed() >= LAG_TIMEOUT;
        if is_stalled { Err(EtcdFailure::TimedOut) } else { Ok(()) }
    }
}

impl FollowProgress {
    pub(super) fn at(revision: i64) -> Self {
        Self { revision, tail: None, parts: Vec::new(), has_unopened: false }
    }
}

impl Follower {
    /// Follows etcd until the store closes. Reconnects as needed.
    pub(super) async fn run(mut self) -> Result<(), FatalError> {
        let closing = self.closing.clone();
        let result = closing.run_until_cancelled(self.serve()).await.unwrap_or(Ok(()));
        if result.is_err() {
            // The published state differs from etcd.
            self.publisher.hub.close();
        }
        if matches!(result, Err(FatalError::CommitsLost)) {
            let recorded =
                open::begin_epoch(&self.reader.client, &self.reader.root, self.identity.epoch).await;
            if let Err(failure) = recorded {
                tracing::error!(error = failure.log_text(), "cannot record the new epoch");
            }
        }
        result
    }

    async fn serve(&mut self) -> Result<(), FatalError> {
        // Number of members that have failed since the last progress.
        let (mut failed, mut outage) = (0, OutageLog::default());
        loop {
            let failure = match self.follow(&mut failed, &mut outage).await {
                Ok(never) => match never {},
                Err(EtcdFailure::Fatal(fatal)) => return Err(fatal),
                Err(failure) => failure,
            };
            failed += 1;
            if failed < self.reader.client.members() {
                tracing::warn!(error = failure.log_text(), "etcd member failed, trying another member");
                continue;
            }
            // A value that cannot be opened does not mean that etcd is unreachable.
            self.reader.client.set_reachable(matches!(failure, EtcdFailure::Sealed { .. }));
            if let Some(outage_seconds) = outage.record_failure() {
                tracing::warn!(error = failure.log_text(), outage_seconds, "cannot follow etcd, retrying");
            }
            sleep(RETRY_DELAY).await;
        }
    }

    /// Follows etcd until the connection is lost.
    async fn follow(
        &mut self,
        failed: &mut usize,
        outage: &mut OutageLog,
    ) -> Result<std::convert::Infallible, EtcdFailure> {
        self.check().await?;
        let (range, start_revision) = (self.reader.keys.all(), self.progress.revision + 1);
        self.progress.parts.clear();
        let mut stream = self.reader.client.watch(range, start_revision).await?;
        self.reader.client.set_reachable(true);
        *failed = 0;
        let result = self.follow_stream(&mut stream, outage).await;
        stream.switch_member();
        result
    }

    async fn follow_stream(
        &mut self,
        stream: &mut WatchStream,
        outage: &mut OutageLog,
    ) -> Result<std::convert::Infallible, EtcdFailure> {
        let mut rules = self.reader.values.seal.rules_replaced();
        // Keys may have become available while the watch was interrupted.
        let mut retry_at = self.retry_unreadable().await?;
        let mut progress_ticks = interval(PROGRESS_INTERVAL);
        progress_ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut liveness_ticks, mut liveness) =
            (interval(POLL_INTERVAL), WatchLiveness::at(self.progress.revision));
        liveness_ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let wanted_revision = *self.wanted_revision.borrow_and_update();
            let is_waited_for = wanted_revision > self.progress.revision;
            tokio::select! {
                response = stream.next() => {
                    self.handle_response(response?).await?;
                    if let Some(outage_seconds) = outage.record_success() {
                        tracing::info!(outage_seconds, "etcd available again");
                    }
                    liveness.received = Instant::now();
                    if std::mem::take(&mut self.progress.has_unopened) {
                        retry_at = retry_at.or(Some(Instant::now() + UNREADABLE_RETRY_INTERVAL));
                    }
                }
                changed = self.wanted_revision.changed() => match changed {
                    Ok(()) => self.request_progress(stream),
                    // No caller can wait any more.
                    Err(_) => return Err(EtcdFailure::Unreachable),
                },
                _ = progress_ticks.tick(), if is_waited_for => self.request_progress(stream),
                _ = liveness_ticks.tick(), if self.reader.client.members() > 1 => {
                    liveness.check(self.progress.revision, is_waited_for)?;
                    if liveness.received.elapsed() >= POLL_INTERVAL {
                        stream.request_progress();
                    }
                }
                Ok(()) = rules.changed() => retry_at = self.retry_unreadable().await?,
                () = sleep_until(retry_at.unwrap_or_else(Instant::now)), if retry_at.is_some() => {
                    retry_at = self.retry_unreadable().await?;
                }
            }
        }
    }

    fn request_progress(&self, stream: &WatchStream) {
        if *self.wanted_revision.borrow() > self.progress.revision {
            stream.request_progress();
        }
    }

    /// Checks that etcd still has the published commits.
    async fn check(&self) -> Result<(), EtcdFailure> {
        let fatal_error = |fatal| Err(EtcdFailure::Fatal(fatal));
        let Some(meta) = open::meta(&self.reader.client, &self.reader.root).await? else {
            return fatal_error(FatalError::Replaced);
        };
        match &meta.identity {
            found if found.store_id != self.identity.store_id => return fatal_error(FatalError::Replaced),
            found if found.epoch != self.identity.epoch => return fatal_error(FatalError::NewEpoch),
            _ if meta.cluster_id != self.cluster_id => return fatal_error(FatalError::CommitsLost),
            _ if meta.revision < self.progress.revision => return fatal_error(FatalError::CommitsLost),
            _ => {}
        }
        match &self.progress.tail {
            Some(tail) => self.check_tail(tail).await,
            None => Ok(()),
        }
    }

    async fn check_tail(&self, tail: &Tail) -> Result<(), EtcdFailure> {
        let request =
            RangeRequest { key: tail.etcd_key.clone(), revision: tail.revision, ..RangeRequest::default() };
        let found = match self.reader.client.range_unchecked(request).await {
            Ok(found) => found.kvs.first().map(|found| found.mod_revision),
            // After compaction the change can no longer be checked.
            Err(failure) if failure.is_compacted() => return Ok(()),
            Err(failure) => return Err(failure),
        };
        let expected = (!tail.is_deleted).then_some(tail.revision);
        if found == expected { Ok(()) } else { Err(EtcdFailure::Fatal(FatalError::CommitsLost)) }
    }

    async fn handle_response(&mut self, mut response: WatchResponse) -> Result<(), EtcdFailure> {
        if response.canceled {
            let is_compacted = response.compact_revision > 0;
            let status = tonic::Status::unavailable(response.cancel_reason);
            return Err(if is_compacted {
                EtcdFailure::Fatal(FatalError::CommitsMissed)
            } else {
                status.into()
            });
        }
        let has_no_events = self.progress.parts.is_empty() && response.events.is_empty();
        self.progress.parts.append(&mut response.events);
        let found = events::take_complete(&mut self.progress.parts, response.fragment);
        match found.last().map(WatchEvent::revision) {
            Some(revision) => self.publish(found, revision).await,
            None if response.created || !has_no_events => Ok(()),
            // A progress notification: everything up to this revision was sent.
            None => {
                let revision = response.header.unwrap_or_default().revision;
                if revision > self.progress.revision {
                    self.progress.revision = revision;
                    self.publisher.advance(revision);
                }
                Ok(())
            }
        }
    }

    /// Publishes the changes up to a revision.
    async fn publish(&mut self, found: Vec<WatchEvent>, revision: i64) -> Result<(), EtcdFailure> {
        let mut events = Vec::with_capacity(found.len());
        for found in found {
            let (Some(kv), event_type) = (&found.kv, found.event_type) else { continue };
            let tail = Tail {
                etcd_key: kv.key.clone(),
                revision: kv.mod_revision,
                is_deleted: event_type == i32::from(super::wire::WatchEventType::Delete),
            };
            let Some(event) =
                events::decode_event(&self.reader, &found, UnopenedPolicy::MarkUnreadable).await?
            else {
                continue;
            };
            if read_only::is_read_only_key(&event.record.key)
                && read_only::is_restore_record(event.record.value.json())
            {
                return Err(EtcdFailure::Fatal(FatalError::Restoring));
            }
            if let Some(object) = &event.unreadable {
                self.progress.has_unopened |= object.is_sealed();
                tracing::error!(
                    object = %object.key(),
                    revision = object.revision(),
                    error = object.reason(),
                    "cannot read an object written by another process, omitted from lists"
                );
            }
            events.push(Arc::new(event));
            self.progress.tail = Some(tail);
        }
        self.progress.revision = revision;
        if events.is_empty() {
            self.publisher.advance(revision);
            return Ok(());
        }
        self.reader.owner_index.apply(&events);
        let events: Batch = events.into();
        self.publisher.publish(&events, revision);
        self.publisher.fan_out(&events, revision);
        Ok(())
    }
}
