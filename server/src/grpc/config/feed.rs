//! Configuration stream of one facade: a snapshot, then deltas, and the facade's acknowledgements and observations.

use std::sync::Arc;
use std::time::Duration;

use portico_proto::config as pb;
use portico_proto::convert::{Entry, Payload, PayloadKind};
use portico_routes::{TableEntry as Routed, TableEntryKey, TableSubscription, TableUpdate};
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tonic::Streaming;

use super::board::{self, BoardReader};
use super::facades::{FacadeRegistration, Facades};
use super::sources::StreamSources;
use crate::grpc::RpcResult;

/// Interval at which revisions without changes are reported to a facade.
const PROGRESS_PERIOD: Duration = Duration::from_millis(500);
/// Interval of messages on a stream without changes. Facades measure the age of their configuration by these messages.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Time without updates for each entry of a delta. A single change is thus followed by the next one at once, and many changes are
/// combined into large deltas, which are much cheaper for the facade's route table than many small ones.
const UPDATE_DELAY_PER_ENTRY: Duration = Duration::from_micros(250);
/// Maximum time without updates after a delta.
const MAX_UPDATE_DELAY: Duration = Duration::from_millis(100);
/// Approximate maximum bytes of entries in one message.
const MESSAGE_BYTES: usize = 1024 * 1024 - 64 * 1024;

pub(super) struct ConfigFeed {
    pub(super) sources: Arc<StreamSources>,
    pub(super) facades: Facades,
    pub(super) peer: String,
    pub(super) address: String,
    pub(super) outbound: mpsc::Sender<RpcResult<pb::StreamResponse>>,
}

/// The facade closed the stream, or the connection broke.
struct Disconnected;

impl ConfigFeed {
    /// Serves the stream until either side closes it.
    pub(super) async fn run(self, mut inbound: Streaming<pb::StreamRequest>) {
        let subscriber = self.facades.connect(self.peer.clone(), self.address.clone());
        // Wait for the initial state: an empty route table or policy would look complete, and without the checks a facade would
        // be ready before this control service is.
        self.sources.routes.initiated().signaled().await;
        self.sources.policy_known.signaled().await;
        self.sources.checks_known.signaled().await;
        let mut routes = self.sources.publisher().subscribe(None);
        let mut board = self.sources.board.subscribe();
        // Version that the facade has; 0 before the first snapshot, which also contains the board.
        let mut sent = 0;
        let (revisions, mut seen) = (self.sources.revisions.clone(), 0);
        let mut last_sent = Instant::now();
        let mut progress_ticks = tokio::time::interval(PROGRESS_PERIOD);
        progress_ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut update_delay = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
        let (draining, mut is_drain_sent) = (self.facades.draining().clone(), false);
        loop {
            let update = async {
                update_delay.as_mut().await;
                routes.next().await
            };
            let step = tokio::select! {
                update = update => {
                    last_sent = Instant::now();
                    let entries = u32::try_from(update.entries()).unwrap_or(u32::MAX);
                    let pause = UPDATE_DELAY_PER_ENTRY.saturating_mul(entries).min(MAX_UPDATE_DELAY);
                    update_delay.as_mut().reset(Instant::now() + pause);
                    self.send_update(update, &mut board, &mut sent).await
                }
                () = board.wait_changed(), if sent > 0 => self.send_board(&mut routes, &mut board, &mut sent).await,
                _ = progress_ticks.tick() => {
                    let passed = std::mem::replace(&mut seen, *revisions.borrow());
                    if passed > sent || last_sent.elapsed() >= HEARTBEAT {
                        last_sent = Instant::now();
                    } else {
                        continue;
                    }
                    self.send_progress(passed, &mut sent).await
                }
                message = inbound.message() => receive(&subscriber, message),
                () = draining.signaled(), if !is_drain_sent => {
                    is_drain_sent = true;
                    self.send(pb::stream_response::Message::Draining(pb::Draining {})).await
                }
            };
            if step.is_err() {
                return;
            }
        }
    }

    async fn send_update(
        &self,
        update: TableUpdate,
        board: &mut BoardReader,
        sent: &mut i64,
    ) -> Result<(), Disconnected> {
        use pb::stream_response::Message as M;
        match update {
            TableUpdate::Snapshot(snapshot) => {
                let version = Some(pb::Version::from(&self.sources.version(snapshot.revision)));
                *sent = snapshot.revision;
                let heartbeat_millis = u32::try_from(HEARTBEAT.as_millis()).unwrap_or(u32::MAX);
                self.send(M::Begin(pb::Begin { version: version.clone(), heartbeat_millis })).await?;
                let routes = snapshot.entries.into_iter().map(|(k, e)| entry(&k, Some(e), snapshot.revision));
                let (revision, posted) = board.read_all();
                let posted = posted.into_iter().map(|(key, p)| board::entry(key, Some(&p), revision));
                self.send_entries(posted.chain(routes), None).await?;
                self.send(M::End(pb::End { version })).await
            }
            TableUpdate::Delta(delta) => {
                *sent = (*sent).max(delta.revision);
                let version = pb::Version::from(&self.sources.version(*sent));
                if delta.changes.is_empty() {
                    // The next progress message reports it, together with revisions that do not concern the routes.
                    return Ok(());
                }
                let changes = delta.changes.into_iter().map(|(k, e)| entry(&k, e, delta.revision));
                self.send_entries(changes, Some(version)).await
            }
        }
    }

    /// Sends the changes on the board.
    async fn send_board(
        &self,
        routes: &mut TableSubscription,
        board: &mut BoardReader,
        sent: &mut i64,
    ) -> Result<(), Disconnected> {
        // Routes first: a group version is routed before it is advertised.
        if let Some(update) = routes.try_next() {
            self.send_update(update, board, sent).await?;
        }
        let (revision, changes) = board.read_changes();
        if changes.is_empty() {
            return Ok(());
        }
        let version = pb::Version::from(&self.sources.version(*sent));
        let entries =
            changes.into_iter().map(|(key, payload)| board::entry(key, payload.as_deref(), revision));
        self.send_entries(entries, Some(version)).await
    }

    /// Reports revisions that concern no facade. Only revisions of the previous period are reported, because routes of newer ones
    /// may still be compiled. Without new revisions, the current version is repeated as a heartbeat.
    async fn send_progress(&self, newest: i64, sent: &mut i64) -> Result<(), Disconnected> {
        use pb::stream_response::Message as M;
        if *sent == 0 {
            return Ok(());
        }
        *sent = newest.max(*sent);
        let version = Some(pb::Version::from(&self.sources.version(*sent)));
        self.send(M::Progress(pb::Progress { version })).await
    }

    /// Sends entries in messages of limited size. All messages of a delta carry its version, because each can
    /// be applied separately.
    async fn send_entries(
        &self,
        entries: impl Iterator<Item = Entry>,
        version: Option<pb::Version>,
    ) -> Result<(), Disconnected> {
        use pb::stream_response::Message as M;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for entry in entries {
            let entry = pb::Entry::from(&entry);
            bytes += entry.encoded_len();
            batch.push(entry);
            if bytes >= MESSAGE_BYTES {
                let entries = std::mem::take(&mut batch);
                self.send(M::Entries(pb::Entries { version: version.clone(), entries })).await?;
                bytes = 0;
            }
        }
        if batch.is_empty() && version.is_none() {
            return Ok(());
        }
        self.send(M::Entries(pb::Entries { version, entries: batch })).await
    }

    async fn send(&self, message: pb::stream_response::Message) -> Result<(), Disconnected> {
        self.outbound.send(Ok(pb::StreamResponse { message: Some(message) })).await.map_err(|_| Disconnected)
    }
}

fn entry(key: &TableEntryKey, entry: Option<Routed>, revision: i64) -> Entry {
    let (kind, key) = match key {
        TableEntryKey::Bundle(hash) => (PayloadKind::TrustBundle, hash),
        TableEntryKey::Route(name) => (PayloadKind::Route, name),
    };
    let payload = entry.map(|e| match e {
        Routed::Bundle(bundle) => Payload::TrustBundle(bytes::Bytes::copy_from_slice(&bundle.pem)),
        Routed::Route(route) => Payload::Route(route),
    });
    Entry { kind, key: key.to_string(), revision, payload }
}

fn receive(
    subscriber: &FacadeRegistration,
    message: Result<Option<pb::StreamRequest>, tonic::Status>,
) -> Result<(), Disconnected> {
    use pb::stream_request::Message as M;
    match message {
        Ok(Some(pb::StreamRequest { message: Some(message) })) => {
            match message {
                M::Hello(hello) => subscriber.introduce(hello),
                M::Ack(ack) => subscriber.acknowledge(ack),
                M::Observations(observations) => subscriber.observe(observations),
                M::Report(report) => subscriber.report(report),
            }
            Ok(())
        }
        Ok(Some(_)) => Ok(()),
        Ok(None) | Err(_) => Err(Disconnected),
    }
}
