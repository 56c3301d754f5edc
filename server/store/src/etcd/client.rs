//! Requests to etcd members, with timeouts. Idempotent requests are also sent to the next member when one fails or is slow
//! (hedging). A write is sent once, unless it was certainly not executed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep, timeout};
use tonic::metadata::MetadataValue;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::failure::Failure;
use super::keys::KeyRange;
use super::members::Members;
use super::settings::EtcdSettings;
use super::wire::{
    CompactionRequest, CompactionResponse, LeaseGrantRequest, LeaseGrantResponse, RangeRequest,
    RangeResponse, StatusRequest, StatusResponse, TxnRequest, TxnResponse, WatchAsk, WatchCreate,
    WatchProgress, WatchRequest, WatchResponse,
};

/// Delay before a request for a single key is also sent to another member.
const PATIENCE: Duration = Duration::from_millis(500);
/// Delay before a large request, or the start of a watch, is also sent to another member.
const LONG_PATIENCE: Duration = Duration::from_secs(2);
/// Maximum time without a leader before requests fail, and interval of retries in the meantime.
const ELECTION: Duration = Duration::from_secs(3);
const ELECTION_PAUSE: Duration = Duration::from_millis(50);
/// Interval of progress requests while a caller waits for a revision.
pub(super) const PROGRESS: Duration = Duration::from_millis(20);
/// Capacity of the queue of requests of a watch.
const WATCH_REQUESTS: usize = 4;

/// Client of an etcd cluster.
#[derive(Clone)]
pub(super) struct Client {
    members: Arc<Members>,
    within: Duration,
    reached: Arc<AtomicBool>,
}

/// Running watch.
pub(super) struct WatchStream {
    requests: mpsc::Sender<WatchRequest>,
    responses: Streaming<WatchResponse>,
    members: Arc<Members>,
    member: usize,
}

impl Client {
    /// Creates a client that connects at the first request.
    pub(super) fn new(settings: &EtcdSettings) -> Result<Self, Failure> {
        let members = Arc::new(Members::new(settings).map_err(Failure::Settings)?);
        Ok(Self { members, within: settings.request_timeout, reached: Arc::new(AtomicBool::new(true)) })
    }

    /// Returns the number of members.
    pub(super) fn members(&self) -> usize {
        self.members.count()
    }

    /// Records if etcd can be reached, as observed by the follower.
    pub(super) fn set_reached(&self, reached: bool) {
        self.reached.store(reached, Ordering::Release);
    }

    /// Fails at once while etcd cannot be reached.
    fn check_reached(&self) -> Result<(), Failure> {
        if self.reached.load(Ordering::Acquire) { Ok(()) } else { Err(Failure::Away) }
    }

    /// Sends a request to one member.
    async fn ask<Q, A>(&self, member: usize, path: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = self.members.grpc(member);
        grpc.ready().await.map_err(|error| Failure::unsent(&error))?;
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc.unary(leading(Request::new(request)), PathAndQuery::from_static(path), codec).await;
        Ok(answer?.into_inner())
    }

    /// Sends an idempotent request, with retries during an election.
    async fn ask_any<Q, A>(&self, path: &'static str, request: Q, patience: Duration) -> Result<A, Failure>
    where
        Q: prost::Message + Clone + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let until = Instant::now() + ELECTION;
        let asked = async {
            loop {
                match self.ask_each(path, &request, patience).await {
                    Err(failure) if failure.is_of_election() && Instant::now() < until => {
                        sleep(ELECTION_PAUSE).await;
                    }
                    answered => return answered,
                }
            }
        };
        self.in_time(asked).await
    }

    /// Sends a request to the current member and, if one fails or is slow, to the next one as well. Returns the first response.
    async fn ask_each<Q, A>(&self, path: &'static str, request: &Q, patience: Duration) -> Result<A, Failure>
    where
        Q: prost::Message + Clone + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let (first, count) = (self.members.in_use(), self.members.count());
        let (mut asked, mut next) = (FuturesUnordered::new(), 0);
        loop {
            if next < count {
                let member = self.members.after(first, next);
                next += 1;
                asked.push(async move { (member, self.ask(member, path, request.clone()).await) });
            }
            let (member, answer) = tokio::select! {
                Some(answered) = asked.next() => answered,
                () = sleep(patience), if next < count => continue,
                else => return Err(Failure::Away),
            };
            match answer {
                Err(failure) if failure.is_of_member() => {
                    self.leave(member, &failure);
                    // Does not wait for a hanging member if the other members have just elected a leader.
                    if next == count && (asked.is_empty() || failure.is_of_election()) {
                        return Err(failure);
                    }
                }
                answer => {
                    self.members.change(first, member);
                    return answer;
                }
            }
        }
    }

    /// Switches to another member if the failure is due to this one.
    fn leave(&self, member: usize, failure: &Failure) {
        if failure.is_of_member() && !failure.is_of_change() {
            self.members.leave(member);
        }
    }

    /// Sends a request once, to the current member, and to another one only if it was certainly not executed.
    async fn ask_once<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: prost::Message + Clone + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let (until, mut failures) = (Instant::now() + ELECTION, 0);
        loop {
            let member = self.members.in_use();
            let answer = self.in_time(self.ask(member, path, request.clone())).await;
            let Err(failure) = answer else { return answer };
            self.leave(member, &failure);
            failures += 1;
            let waits = failure.is_of_election() && Instant::now() < until;
            if !failure.is_untaken() || (failures >= self.members.count() && !waits) {
                return Err(failure);
            }
            if waits {
                sleep(ELECTION_PAUSE).await;
            }
        }
    }

    /// Runs a step with the request timeout.
    pub(super) async fn in_time<T>(
        &self,
        step: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout(self.within, step).await.map_err(|_| Failure::Late)?
    }

    /// Returns the keys and values of a range. Fails at once while etcd is known to be unreachable.
    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Failure> {
        self.check_reached()?;
        self.probe(request).await
    }

    /// Returns the keys and values of a range, even if etcd is known to be unreachable: for the follower, which detects that.
    pub(super) async fn probe(&self, request: RangeRequest) -> Result<RangeResponse, Failure> {
        let patience = if request.range_end.is_empty() { PATIENCE } else { LONG_PATIENCE };
        self.ask_any("/etcdserverpb.KV/Range", request, patience).await
    }

    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Failure> {
        self.check_reached()?;
        self.txn_anyway(request).await
    }

    /// Executes a transaction even if etcd is known to be unreachable.
    pub(super) async fn txn_anyway(&self, request: TxnRequest) -> Result<TxnResponse, Failure> {
        self.ask_once("/etcdserverpb.KV/Txn", request).await
    }

    pub(super) async fn compact(&self, revision: i64) -> Result<(), Failure> {
        self.check_reached()?;
        let request = CompactionRequest { revision };
        let done = self.ask_any("/etcdserverpb.KV/Compact", request, LONG_PATIENCE).await;
        done.map(|_: CompactionResponse| ())
    }

    /// Grants a lease with this time to live in seconds. Returns its ID.
    pub(super) async fn grant(&self, ttl: i64) -> Result<i64, Failure> {
        self.check_reached()?;
        let request = LeaseGrantRequest { ttl };
        let granted: LeaseGrantResponse =
            self.ask_any("/etcdserverpb.Lease/LeaseGrant", request, PATIENCE).await?;
        if granted.error.is_empty() { Ok(granted.id) } else { Err(Status::unavailable(granted.error).into()) }
    }

    pub(super) async fn status(&self) -> Result<StatusResponse, Failure> {
        self.check_reached()?;
        self.ask_any("/etcdserverpb.Maintenance/Status", StatusRequest {}, PATIENCE).await
    }

    /// Watches a range from a revision on, with previous states.
    pub(super) async fn watch(
        &self,
        (key, range_end): KeyRange,
        start_revision: i64,
    ) -> Result<WatchStream, Failure> {
        let (requests, queue) = mpsc::channel(WATCH_REQUESTS);
        let create = WatchCreate { key, range_end, start_revision, prev_kv: true, fragment: true };
        let ask = WatchRequest { ask: Some(WatchAsk::Create(create)) };
        requests.send(ask).await.map_err(|error| Failure::Unsent(error.to_string()))?;
        let queue = futures::stream::unfold(queue, async |mut queue| {
            queue.recv().await.map(|request: WatchRequest| (request, queue))
        });
        let member = self.members.in_use();
        let mut grpc = self.members.grpc(member);
        let asked = async {
            grpc.ready().await.map_err(|error| Failure::unsent(&error))?;
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            Ok::<_, Failure>(grpc.streaming(leading(Request::new(queue)), path, codec).await?.into_inner())
        };
        let patience = if self.members() > 1 { LONG_PATIENCE.min(self.within) } else { self.within };
        match timeout(patience, asked).await.map_err(|_| Failure::Late).flatten() {
            Ok(responses) => Ok(WatchStream { requests, responses, members: self.members.clone(), member }),
            Err(failure) => {
                self.members.leave(member);
                Err(failure)
            }
        }
    }
}

impl WatchStream {
    /// Returns the next response. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<WatchResponse, Failure> {
        let response = self.responses.message().await?;
        response.ok_or_else(|| Status::unavailable("the watch has ended").into())
    }

    /// Switches the client to another member.
    pub(super) fn leave(&self) {
        self.members.leave(self.member);
    }

    /// Returns the next response. Sends progress requests until there is one: etcd sends no progress for a watch
    /// that is not synchronized yet, and synchronizes watches that start in the past every 100 ms.
    pub(super) async fn next_or_progress(&mut self) -> Result<WatchResponse, Failure> {
        let mut asks = interval(PROGRESS);
        loop {
            tokio::select! {
                response = self.next() => return response,
                _ = asks.tick() => self.request_progress(),
            }
        }
    }

    /// Requests a progress notification. A full queue already contains such a request.
    pub(super) fn request_progress(&self) {
        let ask = WatchRequest { ask: Some(WatchAsk::Progress(WatchProgress {})) };
        let _as_good_as_queued = self.requests.try_send(ask);
    }
}

/// Adds the header that makes a member without a leader reject the request or end the stream.
fn leading<T>(mut request: Request<T>) -> Request<T> {
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    request
}
