//! Client of the configuration stream: snapshots, changes, acknowledgements, and observations of backends.
//!
//! If the stream is lost, the configuration stays active and the client reconnects: to another control service at once if
//! there is one, otherwise with jittered backoff. The snapshot of another control service replaces the configuration as a whole,
//! and only when it is not older. Does not depend on the meaning of entries; [`crate::configuration`] applies them.

mod acks;
mod json_calls;
mod observe;
mod report;
mod reviews;
pub(crate) mod sign;
mod snapshot;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use portico_gostd::time::format_duration;
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_machinery::rbac;
use portico_proto::MAX_MESSAGE_BYTES;
use portico_proto::catalog::GetRequest;
use portico_proto::catalog::catalog_client::CatalogClient;
use portico_proto::config::config_client::ConfigClient;
use portico_proto::config::stream_request::Message as RequestMessage;
use portico_proto::config::stream_response::Message as ResponseMessage;
use portico_proto::config::{self as pb, Ack, Entries, Hello, Observations, StreamRequest, StreamResponse};
use portico_proto::convert::{Entry, InvalidEntry, PayloadKind, Version};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::configuration::{Configuration, Refusal};
use crate::control_services::{CallReason, ControlServices, Member, MemberState, RetryCondition};
use crate::freshness::Freshness;
use crate::last_hour::LastHour;
use acks::Acks;
use observe::Observer;
use snapshot::PendingSnapshot;

pub use json_calls::{CallError, JsonAnswer, JsonCalls, JsonMethod};
pub use reviews::{AccessReviewClient, ReviewClient, TokenReviewClient};

/// Acknowledgements and reports that wait to be sent to the control service.
///
/// Limit (Facades and control services): an acknowledgement is skipped; reports wait.
const OUTBOX_CAPACITY: usize = 64;
/// Interval between reports of observations of backends.
const OBSERVE_INTERVAL: Duration = Duration::from_secs(1);
/// Size of a document from the control service.
///
/// Limit (Facades and control services, bytes): the document is rejected.
const MAX_DOCUMENT_BYTES: usize = 64 << 20;
/// Heartbeat intervals without a message after which the configuration stream counts as lost.
///
/// Limit (Facades and control services): the facade reconnects.
const MISSED_HEARTBEATS: u32 = 10;
/// Timeout for opening a stream.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// Backoff between connection attempts. It starts short, because every change waits for the connection.
const RECONNECT_BACKOFF: BackoffPolicy =
    BackoffPolicy::new(Duration::from_millis(50), Duration::from_secs(2), 2.0, 0.5);

/// Reason for the end of a stream.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error("{}", CallReason(.0))]
    Rpc(#[from] tonic::Status),
    #[error("the control service ended the stream")]
    Ended,
    #[error("protocol violation of the control service: {0}")]
    Protocol(&'static str),
    #[error("no message from the control service for {} on an open stream", format_duration(*.0))]
    Silence(Duration),
    #[error("the facade switched to another control service")]
    Switched,
    #[error("the control service serves another store: {0}")]
    OtherStore(String),
}

/// Client of the configuration stream.
pub struct ConfigStreamClient {
    services: ControlServices,
    configuration: Arc<Configuration>,
    freshness: Arc<Freshness>,
    last_hour: Arc<LastHour>,
    /// Human-readable name of the facade: host and process.
    name: String,
}

/// State of one stream.
struct StreamSession {
    outbox: mpsc::Sender<StreamRequest>,
    acks: Acks,
    /// Control service at the other end of the stream.
    member: Arc<Member>,
    snapshot: Option<PendingSnapshot>,
    observer: Observer,
    /// Time of the newest load sample that was reported; `None` before the first report.
    reported_until: Option<i64>,
    /// Time of the last message.
    last_message: Instant,
    /// Maximum time between two messages; `None` if the control service announces no heartbeats.
    max_silence: Option<Duration>,
}

impl StreamSession {
    fn check_silence(&self) -> Result<(), StreamError> {
        match self.max_silence {
            Some(limit) if self.last_message.elapsed() > limit => Err(StreamError::Silence(limit)),
            _ => Ok(()),
        }
    }
}

impl ConfigStreamClient {
    /// Creates a client that applies what it receives to `configuration`.
    #[must_use]
    pub fn new(
        services: ControlServices,
        configuration: Arc<Configuration>,
        freshness: Arc<Freshness>,
        last_hour: Arc<LastHour>,
        name: String,
    ) -> Self {
        Self { services, configuration, freshness, last_hour, name }
    }

    /// Runs streams until canceled.
    pub async fn run(self) {
        let mut backoff = Backoff::new(RECONNECT_BACKOFF);
        if self.freshness.has_configuration() {
            self.configuration.mark_stale();
        }
        loop {
            let member = self.services.current();
            let Err(error) = self.session(&member, &mut backoff).await;
            // Stale until a stream confirms the configuration again: the next control service may be behind.
            self.freshness.set_stale();
            if matches!(error, StreamError::Switched) {
                tracing::debug!(server = member.name, "switching to another control service");
                continue;
            }
            // Check at once whether the control service is lost.
            member.suspect();
            self.configuration.mark_stale();
            let wait = backoff.next_wait();
            if backoff.failures() == 1 {
                tracing::warn!(error = %error, "control service lost, serving the last configuration");
            } else {
                let retry_in = format_duration(wait);
                tracing::debug!(error = %error, retry_in, "control service still unreachable");
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.services.until_switched(&member) => {}
            }
        }
    }

    async fn session(
        &self,
        member: &Arc<Member>,
        backoff: &mut Backoff,
    ) -> Result<std::convert::Infallible, StreamError> {
        let (outbox, inbox) = mpsc::channel(OUTBOX_CAPACITY);
        let hello = Hello {
            name: self.name.clone(),
            holds: self.configuration.version().as_ref().map(Into::into),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            has_others: !self.services.is_single(),
        };
        // The channel is new and empty.
        let _ = outbox.try_send(StreamRequest { message: Some(RequestMessage::Hello(hello)) });
        let mut client = ConfigClient::new(member.transport.config.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let opening = client.stream(member.transport.request(ReceiverStream::new(inbox)));
        let opened = tokio::select! {
            opened = tokio::time::timeout(OPEN_TIMEOUT, opening) => opened.map_err(|_| StreamError::Silence(OPEN_TIMEOUT))?,
            () = self.services.until_switched(member) => return Err(StreamError::Switched),
        };
        let mut stream = opened?.into_inner();
        let mut session = StreamSession {
            outbox,
            acks: Acks::default(),
            member: Arc::clone(member),
            snapshot: None,
            observer: Observer::default(),
            reported_until: None,
            last_message: Instant::now(),
            max_silence: None,
        };
        let mut ticks = tokio::time::interval(OBSERVE_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = stream.message() => {
                    let message = message?.ok_or(StreamError::Ended)?;
                    if backoff.failures() > 0 {
                        tracing::info!("control service reachable again");
                        backoff.reset();
                    }
                    member.record_answer();
                    self.handle_message(&mut session, message)?;
                    // Time spent on handling a message does not count as silence.
                    session.last_message = Instant::now();
                }
                _ = ticks.tick() => {
                    session.check_silence()?;
                    session.acks.send(&session.outbox);
                    self.report_observations(&mut session);
                    self.report_state(&mut session);
                }
                () = self.services.until_switched(member) => return Err(StreamError::Switched),
            }
        }
    }

    fn handle_message(
        &self,
        session: &mut StreamSession,
        message: StreamResponse,
    ) -> Result<(), StreamError> {
        match message.message {
            Some(ResponseMessage::Begin(begin)) => {
                let version = version(begin.version)?;
                if !self.services.check_store(&session.member, &version) {
                    self.services.set_state(&session.member, MemberState::OtherStore);
                    return Err(StreamError::OtherStore(version.store_id));
                }
                let heartbeat = Duration::from_millis(begin.heartbeat_millis.into());
                session.max_silence =
                    (!heartbeat.is_zero()).then(|| heartbeat.saturating_mul(MISSED_HEARTBEATS));
                session.snapshot = Some(PendingSnapshot::new(version));
            }
            Some(ResponseMessage::Entries(entries)) => {
                let (valid, refused) = convert_entries(entries.entries);
                if let Some(snapshot) = &mut session.snapshot {
                    snapshot.add(entries.version.map(Version::from), valid, refused);
                    self.replace_if_current(session);
                    return Ok(());
                }
                let version = version(entries.version)?;
                let mut all = self.configuration.change(version.clone(), valid);
                all.extend(refused);
                self.acknowledge(session, &version, all);
            }
            Some(ResponseMessage::End(_)) => {
                let snapshot = session.snapshot.as_mut().ok_or(StreamError::Protocol("End without Begin"))?;
                snapshot.mark_complete();
                self.replace_if_current(session);
            }
            Some(ResponseMessage::Progress(progress)) => {
                let version = version(progress.version)?;
                if let Some(snapshot) = &mut session.snapshot {
                    snapshot.add(Some(version), Vec::new(), Vec::new());
                    self.replace_if_current(session);
                    return Ok(());
                }
                if self.configuration.version().as_ref() == Some(&version) {
                    self.freshness.confirm();
                    return Ok(());
                }
                self.configuration.advance(version.clone());
                self.acknowledge(session, &version, Vec::new());
            }
            Some(ResponseMessage::Draining(_)) => {
                tracing::info!(server = session.member.name, "control service is shutting down");
                self.services.set_state(&session.member, MemberState::Draining);
            }
            None => tracing::debug!("unsupported message of the control service ignored"),
        }
        Ok(())
    }

    /// Activates the pending snapshot if it is complete and not older than the active configuration.
    fn replace_if_current(&self, session: &mut StreamSession) {
        let active_version = self.configuration.version();
        let can_activate = |snapshot: &mut PendingSnapshot| {
            snapshot.is_complete() && !snapshot.is_older_than(active_version.as_ref())
        };
        if let Some(snapshot) = session.snapshot.take_if(can_activate) {
            let PendingSnapshot { version, refused, .. } = snapshot;
            let mut all = self.configuration.replace(version.clone(), snapshot.entries);
            all.extend(refused);
            self.acknowledge(session, &version, all);
        }
    }

    fn acknowledge(&self, session: &mut StreamSession, version: &Version, refused: Vec<Refusal>) {
        self.freshness.confirm();
        self.freshness.set_live();
        self.configuration.mark_live();
        for Refusal { key, reason } in &refused {
            tracing::warn!(key, error = reason, revision = version.revision, "configuration entry refused");
        }
        let refused = refused.into_iter().map(|r| pb::Refusal { key: r.key, reason: r.reason }).collect();
        session.acks.add(Ack { version: Some(version.into()), refused });
        session.acks.send(&session.outbox);
    }

    fn report_observations(&self, session: &mut StreamSession) {
        let active = self.configuration.active.load();
        let changes = session.observer.changes(&active.routes);
        let mirror_changes = session.observer.mirror_changes(&active.routes);
        if changes.is_empty() && mirror_changes.is_empty() {
            return;
        }
        let observations = changes
            .iter()
            .map(|o| pb::Observation {
                api_service: o.name.clone(),
                reachable: o.stage.is_empty(),
                stage: o.stage.to_owned(),
                detail: o.detail.clone(),
            })
            .collect();
        let mirrors = mirror_changes.iter().map(|(name, counts)| pb::MirrorObservation {
            api_service: name.clone(),
            sent: counts.sent,
            dropped: counts.dropped,
            failed: counts.failed,
            failure: counts.failure.clone(),
        });
        let message =
            Some(RequestMessage::Observations(Observations { observations, mirrors: mirrors.collect() }));
        if session.outbox.try_send(StreamRequest { message }).is_ok() {
            session.observer.record_reported(changes, mirror_changes);
        }
    }
}

impl ConfigStreamClient {
    /// Sends this facade's state if it has changed.
    fn report_state(&self, session: &mut StreamSession) {
        let Some(report) = self.last_hour.report_since(session.reported_until) else { return };
        let until = report.loads.last().map_or(session.reported_until.unwrap_or_default(), |load| load.time);
        let message = Some(RequestMessage::Report(report.into()));
        if session.outbox.try_send(StreamRequest { message }).is_ok() {
            session.reported_until = Some(until);
        }
    }
}

/// Fetches one document from the Catalog service.
///
/// # Errors
/// The message of the control service, or that the document is larger than 64 MiB.
pub async fn fetch_document(services: &ControlServices, hash: String) -> Result<Bytes, String> {
    let fetched =
        services.call(RetryCondition::Always, None, |member| fetch_from(member, hash.clone())).await;
    fetched.map(|(_, document)| document).map_err(|status| CallReason(&status).to_string())
}

async fn fetch_from(member: Arc<Member>, hash: String) -> Result<Bytes, tonic::Status> {
    let client = CatalogClient::new(member.transport.calls.clone());
    let request = member.transport.request(GetRequest { hash });
    let mut parts = client.max_decoding_message_size(MAX_MESSAGE_BYTES).get(request).await?.into_inner();
    let mut document = BytesMut::new();
    while let Some(part) = parts.message().await? {
        if document.len() + part.part.len() > MAX_DOCUMENT_BYTES {
            return Err(tonic::Status::out_of_range("the document is too large"));
        }
        if document.is_empty() {
            document = part.part.into();
        } else {
            document.extend_from_slice(&part.part);
        }
    }
    Ok(document.freeze())
}

/// Encodes entries for the disk.
#[must_use]
pub fn encode(entries: &[Arc<Entry>]) -> Vec<u8> {
    Entries { version: None, entries: entries.iter().map(|e| pb::Entry::from(&**e)).collect() }
        .encode_to_vec()
}

/// Decodes entries from the disk; entries of unknown kinds are skipped.
///
/// # Errors
/// The bytes are not an encoded list of entries.
pub fn decode(bytes: &[u8]) -> Result<Vec<Entry>, prost::DecodeError> {
    Ok(convert_entries(Entries::decode(bytes)?.entries).0)
}

fn convert_entries(entries: Vec<pb::Entry>) -> (Vec<Entry>, Vec<Refusal>) {
    let (mut valid, mut refused) = (Vec::with_capacity(entries.len()), Vec::new());
    for entry in entries {
        let (key, revision) = (entry.key.clone(), entry.revision);
        match Entry::try_from(entry) {
            Ok(entry) => valid.push(entry),
            Err(error) => {
                valid.extend(revocation(&error, &key, revision));
                refused.push(Refusal { key, reason: error.to_string() });
            }
        }
    }
    (valid, refused)
}

/// Replacement for an entry that is refused: a role or binding is removed, because the update may revoke what the previous
/// one granted. Other entries stay as they are, and `None` is returned.
fn revocation(error: &InvalidEntry, key: &str, revision: i64) -> Option<Entry> {
    let is_policy = matches!(error, InvalidEntry::Rbac(_) | InvalidEntry::UnknownPayload(_))
        && key.parse::<rbac::Key>().is_ok();
    is_policy.then(|| Entry { kind: PayloadKind::Rbac, key: key.to_owned(), revision, payload: None })
}

fn version(version: Option<pb::Version>) -> Result<Version, StreamError> {
    version.map(Into::into).ok_or(StreamError::Protocol("a message has no version"))
}
