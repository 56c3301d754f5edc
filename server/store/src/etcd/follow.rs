//! Follows all writes, including those of this process: one watch of all objects, in the order of etcd's
//! revisions, feeds the cache, the owner index and the subscriptions.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Duration, Instant, MissedTickBehavior, interval, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::client::{PROGRESS, WatchStream};
use super::events::{self, Unopened};
use super::failure::{Failure, Fatal};
use super::open::{self, RETRY};
use super::read::Reader;
use super::wire::{RangeRequest, WatchEvent, WatchResponse};
use crate::identity::Identity;
use crate::outage_log::OutageLog;
use crate::publish::Publisher;
use crate::read_only;
use crate::subscription::selection::Batch;

/// Interval of checks of a watch. If it was silent since the last check, its progress is requested.
const LOOK: Duration = Duration::from_millis(250);
/// Time without responses after which the watch is moved to another member.
const SILENT: Duration = Duration::from_millis(1_500);
/// Time without progress after which the watch is moved, although etcd is known to have later revisions.
const BEHIND: Duration = Duration::from_secs(1);

/// Interval at which an unavailable key service is called again.
pub(super) const HEAL_RETRY: Duration = Duration::from_secs(5);

/// Last published change. If etcd no longer has it, commits were lost.
struct Tail {
    place: Vec<u8>,
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
    pub(super) wanted: watch::Receiver<i64>,
    pub(super) progress: Progress,
    /// Cancelled when the writer has ended.
    pub(super) closing: CancellationToken,
}

/// Progress of the follower.
pub(super) struct Progress {
    /// Revision up to which everything is published.
    revision: i64,
    tail: Option<Tail>,
    /// Received events of an incomplete response.
    parts: Vec<WatchEvent>,
    /// True if a published object cannot be opened.
    has_unopened: bool,
}

/// Liveness of a watch.
struct Pulse {
    received: Instant,
    /// Last revision of the watch, and the time since which it has not advanced although a caller waits.
    revision: i64,
    since: Instant,
}

impl Pulse {
    fn at(revision: i64) -> Self {
        Self { received: Instant::now(), revision, since: Instant::now() }
    }

    /// Fails if the watch is silent or lags.
    fn look(&mut self, revision: i64, is_waited_for: bool) -> Result<(), Failure> {
        if !is_waited_for || revision > self.revision {
            (self.revision, self.since) = (revision, Instant::now());
        }
        let is_stalled = self.received.elapsed() >= SILENT || self.since.elapsed() >= BEHIND;
        if is_stalled { Err(Failure::Late) } else { Ok(()) }
    }
}

impl Progress {
    pub(super) fn at(revision: i64) -> Self {
        Self { revision, tail: None, parts: Vec::new(), has_unopened: false }
    }
}

impl Follower {
    /// Follows etcd until the store closes. Reconnects as needed.
    pub(super) async fn run(mut self) -> Result<(), Fatal> {
        let closing = self.closing.clone();
        let served = closing.run_until_cancelled(self.serve()).await.unwrap_or(Ok(()));
        if served.is_err() {
            // The published state differs from etcd.
            self.publisher.hub.close();
        }
        if matches!(served, Err(Fatal::Lost)) {
            let begun = open::begin_epoch(&self.reader.client, &self.reader.root, self.identity.epoch).await;
            if let Err(failure) = begun {
                tracing::error!(error = failure.logged(), "cannot record the new epoch");
            }
        }
        served
    }

    async fn serve(&mut self) -> Result<(), Fatal> {
        // Number of members that have failed since the last progress.
        let (mut failed, mut outage) = (0, OutageLog::default());
        loop {
            let failure = match self.follow(&mut failed, &mut outage).await {
                Ok(never) => match never {},
                Err(Failure::Fatal(fatal)) => return Err(fatal),
                Err(failure) => failure,
            };
            failed += 1;
            if failed < self.reader.client.members() {
                tracing::warn!(error = failure.logged(), "etcd member failed, trying another member");
                continue;
            }
            // A value that cannot be opened does not mean that etcd is unreachable.
            self.reader.client.set_reached(matches!(failure, Failure::Sealed { .. }));
            if let Some(outage_seconds) = outage.failed() {
                tracing::warn!(error = failure.logged(), outage_seconds, "cannot follow etcd, retrying");
            }
            sleep(RETRY).await;
        }
    }

    /// Follows etcd until the connection is lost.
    async fn follow(
        &mut self,
        failed: &mut usize,
        outage: &mut OutageLog,
    ) -> Result<std::convert::Infallible, Failure> {
        self.check().await?;
        let (all, from) = (self.reader.keys.all(), self.progress.revision + 1);
        self.progress.parts.clear();
        let mut stream = self.reader.client.watch(all, from).await?;
        self.reader.client.set_reached(true);
        *failed = 0;
        let followed = self.follow_stream(&mut stream, outage).await;
        stream.leave();
        followed
    }

    async fn follow_stream(
        &mut self,
        stream: &mut WatchStream,
        outage: &mut OutageLog,
    ) -> Result<std::convert::Infallible, Failure> {
        let mut rules = self.reader.values.seal.replaced();
        // Keys may have become available while the watch was interrupted.
        let mut heals_at = self.heal().await?;
        let mut ticks = interval(PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut looks, mut pulse) = (interval(LOOK), Pulse::at(self.progress.revision));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let wanted = *self.wanted.borrow_and_update();
            let is_waited_for = wanted > self.progress.revision;
            tokio::select! {
                response = stream.next() => {
                    self.take(response?).await?;
                    if let Some(outage_seconds) = outage.answered() {
                        tracing::info!(outage_seconds, "etcd available again");
                    }
                    pulse.received = Instant::now();
                    if std::mem::take(&mut self.progress.has_unopened) {
                        heals_at = heals_at.or(Some(Instant::now() + HEAL_RETRY));
                    }
                }
                changed = self.wanted.changed() => match changed {
                    Ok(()) => self.ask(stream),
                    // No caller can wait any more.
                    Err(_) => return Err(Failure::Away),
                },
                _ = ticks.tick(), if is_waited_for => self.ask(stream),
                _ = looks.tick(), if self.reader.client.members() > 1 => {
                    pulse.look(self.progress.revision, is_waited_for)?;
                    if pulse.received.elapsed() >= LOOK {
                        stream.request_progress();
                    }
                }
                Ok(()) = rules.changed() => heals_at = self.heal().await?,
                () = sleep_until(heals_at.unwrap_or_else(Instant::now)), if heals_at.is_some() => {
                    heals_at = self.heal().await?;
                }
            }
        }
    }

    fn ask(&self, stream: &WatchStream) {
        if *self.wanted.borrow() > self.progress.revision {
            stream.request_progress();
        }
    }

    /// Checks that etcd still has the published commits.
    async fn check(&self) -> Result<(), Failure> {
        let lost = |fatal| Err(Failure::Fatal(fatal));
        let Some(meta) = open::meta(&self.reader.client, &self.reader.root).await? else {
            return lost(Fatal::Replaced);
        };
        match &meta.identity {
            found if found.store_id != self.identity.store_id => return lost(Fatal::Replaced),
            found if found.epoch != self.identity.epoch => return lost(Fatal::NewEpoch),
            _ if meta.cluster_id != self.cluster_id => return lost(Fatal::Lost),
            _ if meta.revision < self.progress.revision => return lost(Fatal::Lost),
            _ => {}
        }
        match &self.progress.tail {
            Some(tail) => self.check_tail(tail).await,
            None => Ok(()),
        }
    }

    async fn check_tail(&self, tail: &Tail) -> Result<(), Failure> {
        let request =
            RangeRequest { key: tail.place.clone(), revision: tail.revision, ..RangeRequest::default() };
        let found = match self.reader.client.probe(request).await {
            Ok(found) => found.kvs.first().map(|found| found.mod_revision),
            // After compaction the change can no longer be checked.
            Err(failure) if failure.is_compacted() => return Ok(()),
            Err(failure) => return Err(failure),
        };
        let expected = (!tail.is_deleted).then_some(tail.revision);
        if found == expected { Ok(()) } else { Err(Failure::Fatal(Fatal::Lost)) }
    }

    async fn take(&mut self, mut response: WatchResponse) -> Result<(), Failure> {
        if response.canceled {
            let is_compacted = response.compact_revision > 0;
            let ended = tonic::Status::unavailable(response.cancel_reason);
            return Err(if is_compacted { Failure::Fatal(Fatal::Behind) } else { ended.into() });
        }
        let is_alone = self.progress.parts.is_empty() && response.events.is_empty();
        self.progress.parts.append(&mut response.events);
        let found = events::whole(&mut self.progress.parts, response.fragment);
        match found.last().map(WatchEvent::revision) {
            Some(revision) => self.show(found, revision).await,
            None if response.created || !is_alone => Ok(()),
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
    async fn show(&mut self, found: Vec<WatchEvent>, revision: i64) -> Result<(), Failure> {
        let mut events = Vec::with_capacity(found.len());
        for found in found {
            let (Some(kv), event_type) = (&found.kv, found.event_type) else { continue };
            let tail = Tail {
                place: kv.key.clone(),
                revision: kv.mod_revision,
                is_deleted: event_type == i32::from(super::wire::WatchEventType::Delete),
            };
            let Some(event) = events::read(&self.reader, &found, Unopened::IsUnreadable).await? else {
                continue;
            };
            if read_only::is_switch(&event.record.key) && read_only::is_of_restore(event.record.value.json())
            {
                return Err(Failure::Fatal(Fatal::Restoring));
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
        self.reader.owners.apply(&events);
        let events: Batch = events.into();
        self.publisher.show(&events, revision);
        self.publisher.dispatch(&events, revision);
        Ok(())
    }
}
