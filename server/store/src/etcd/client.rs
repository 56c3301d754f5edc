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

use super::failure::EtcdFailure;
use super::keys::KeyRange;
use super::members::Members;
use super::settings::EtcdSettings;
use super::wire::{
    CompactionRequest, CompactionResponse, LeaseGrantRequest, LeaseGrantResponse, RangeRequest,
    RangeResponse, StatusRequest, StatusResponse, TxnRequest, TxnResponse, WatchAsk, WatchCreate,
    WatchProgress, WatchRequest, WatchResponse,
};

/// Delay before a request for a single key is also sent to another member.
const HEDGE_DELAY: Duration = Duration::from_millis(500);
/// Delay before a large request, or the start of a watch, is also sent to another member.
const LONG_HEDGE_DELAY: Duration = Duration::from_secs(2);
/// Maximum time without a leader before requests fail, and interval of retries in the meantime.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(3);
const ELECTION_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Interval of progress requests while a caller waits for a revision.
pub(super) const PROGRESS_INTERVAL: Duration = Duration::from_millis(20);
/// Capacity of the queue of requests of a watch.
const WATCH_REQUESTS: usize = 4;

/// Client of an etcd cluster.
#[derive(Clone)]
pub(super) struct Client {
    members: Arc<Members>,
    request_timeout: Duration,
    is_reachable: Arc<AtomicBool>,
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
    pub(super) fn new(settings: &EtcdSettings) -> Result<Self, EtcdFailure> {
        let members = Arc::new(Members::new(settings).map_err(EtcdFailure::Settings)?);
        Ok(Self {
            members,
            request_timeout: settings.request_timeout,
            is_reachable: Arc::new(AtomicBool::new(true)),
        })
    }

    /// Returns the number of members.
    pub(super) fn members(&self) -> usize {
        self.members.count()
    }

    /// Records if etcd can be reached, as observed by the follower.
    pub(super) fn set_reachable(&self, reached: bool) {
        self.is_reachable.store(reached, Ordering::Release);
    }

    /// Fails at once while etcd cannot be reached.
    fn check_reachable(&self) -> Result<(), EtcdFailure> {
        if self.is_reachable.load(Ordering::Acquire) { Ok(()) } else { Err(EtcdFailure::Unreachable) }
    }

    /// Sends a request to one member.
    async fn call<Q, A>(&self, member: usize, path: &'static str, request: Q) -> Result<A, EtcdFailure>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = self.members.grpc(member);
        grpc.ready().await.map_err(|error| EtcdFailure::unsent(&error))?;
        let codec = ProstCodec::<Q, A>::default();
        let response =
            grpc.unary(require_leader(Request::new(request)), PathAndQuery::from_static(path), codec).await;
        Ok(response?.into_inner())
    }

    /// Sends an idempotent request, with retries during an election.
    async fn call_idempotent<Q, A>(
        &self,
        path: &'static str,
        request: Q,
        hedge_delay: Duration,
    ) -> Result<A, EtcdFailure>
    where
        Q: prost::Message + Clone + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let deadline = Instant::now() + ELECTION_TIMEOUT;
        let call = async {
            loop {
                match self.call_hedged(path, &request, hedge_delay).await {
                    Err(failure) if failure.is_election() && Instant::now() < deadline => {
                        sleep(ELECTION_RETRY_INTERVAL).await;
                    }
                    result => return result,
                }
            }
        };
        self.with_timeout(call).await
    }

    /// Sends a request to the current member and, if one fails or is slow, to the next one as well. Returns the first response.
    async fn call_hedged<Q, A>(
        &self,
        path: &'static str,
        request: &Q,
        hedge_delay: Duration,
    ) -> Result<A, EtcdFailure>
    where
        Q: prost::Message + Clone + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let (first, count) = (self.members.current(), self.members.count());
        let (mut calls, mut next) = (FuturesUnordered::new(), 0);
        loop {
            if next < count {
                let member = self.members.member_after(first, next);
                next += 1;
                calls.push(async move { (member, self.call(member, path, request.clone()).await) });
            }
            let (member, response) = tokio::select! {
                Some(result) = calls.next() => result,
                () = sleep(hedge_delay), if next < count => continue,
                else => return Err(EtcdFailure::Unreachable),
            };
            match response {
                Err(failure) if failure.is_member_failure() => {
                    self.switch_member(member, &failure);
                    // Does not wait for a hanging member if the other members have just elected a leader.
                    if next == count && (calls.is_empty() || failure.is_election()) {
                        return Err(failure);
                    }
                }
                response => {
                    self.members.switch(first, member);
                    return response;
                }
            }
        }
    }

    /// Switches to another member if the failure is due to this one.
    fn switch_member(&self, member: usize, failure: &EtcdFailure) {
        if failure.is_member_failure() && !failure.is_leader_change() {
            self.members.switch_from(member);
        }
    }

    /// Sends a request once, to the current member, and to another one only if it was certainly not executed.
    async fn call_once<Q, A>(&self, path: &'static str, request: Q) -> Result<A, EtcdFailure>
    where
        Q: prost::Message + Clone + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let (deadline, mut failures) = (Instant::now() + ELECTION_TIMEOUT, 0);
        loop {
            let member = self.members.current();
            let result = self.with_timeout(self.call(member, path, request.clone())).await;
            let Err(failure) = result else { return result };
            self.switch_member(member, &failure);
            failures += 1;
            let should_wait = failure.is_election() && Instant::now() < deadline;
            if !failure.is_not_executed() || (failures >= self.members.count() && !should_wait) {
                return Err(failure);
            }
            if should_wait {
                sleep(ELECTION_RETRY_INTERVAL).await;
            }
        }
    }

    /// Runs a step with the request timeout.
    pub(super) async fn with_timeout<T>(
        &self,
        step: impl Future<Output = Result<T, EtcdFailure>>,
    ) -> Result<T, EtcdFailure> {
        timeout(self.request_timeout, step).await.map_err(|_| EtcdFailure::TimedOut)?
    }

    /// Returns the keys and values of a range. Fails at once while etcd is known to be unreachable.
    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, EtcdFailure> {
        self.check_reachable()?;
        self.range_unchecked(request).await
    }

    /// Returns the keys and values of a range, even if etcd is known to be unreachable: for the follower, which detects that.
    pub(super) async fn range_unchecked(&self, request: RangeRequest) -> Result<RangeResponse, EtcdFailure> {
        let hedge_delay = if request.range_end.is_empty() { HEDGE_DELAY } else { LONG_HEDGE_DELAY };
        self.call_idempotent("/etcdserverpb.KV/Range", request, hedge_delay).await
    }

    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, EtcdFailure> {
        self.check_reachable()?;
        self.txn_unchecked(request).await
    }

    /// Executes a transaction even if etcd is known to be unreachable.
    pub(super) async fn txn_unchecked(&self, request: TxnRequest) -> Result<TxnResponse, EtcdFailure> {
        self.call_once("/etcdserverpb.KV/Txn", request).await
    }

    pub(super) async fn compact(&self, revision: i64) -> Result<(), EtcdFailure> {
        self.check_reachable()?;
        let request = CompactionRequest { revision };
        let result = self.call_idempotent("/etcdserverpb.KV/Compact", request, LONG_HEDGE_DELAY).await;
        result.map(|_: CompactionResponse| ())
    }

    /// Grants a lease with this time to live in seconds. Returns its ID.
    pub(super) async fn grant(&self, ttl: i64) -> Result<i64, EtcdFailure> {
        self.check_reachable()?;
        let request = LeaseGrantRequest { ttl };
        let granted: LeaseGrantResponse =
            self.call_idempotent("/etcdserverpb.Lease/LeaseGrant", request, HEDGE_DELAY).await?;
        if granted.error.is_empty() { Ok(granted.id) } else { Err(Status::unavailable(granted.error).into()) }
    }

    pub(super) async fn status(&self) -> Result<StatusResponse, EtcdFailure> {
        self.check_reachable()?;
        self.call_idempotent("/etcdserverpb.Maintenance/Status", StatusRequest {}, HEDGE_DELAY).await
    }

    /// Watches a range from a revision on, with previous states.
    pub(super) async fn watch(
        &self,
        (key, range_end): KeyRange,
        start_revision: i64,
    ) -> Result<WatchStream, EtcdFailure> {
        let (requests, queue) = mpsc::channel(WATCH_REQUESTS);
        let create = WatchCreate { key, range_end, start_revision, prev_kv: true, fragment: true };
        let request = WatchRequest { ask: Some(WatchAsk::Create(create)) };
        requests.send(request).await.map_err(|error| EtcdFailure::Unsent(error.to_string()))?;
        let queue = futures::stream::unfold(queue, async |mut queue| {
            queue.recv().await.map(|request: WatchRequest| (request, queue))
        });
        let member = self.members.current();
        let mut grpc = self.members.grpc(member);
        let start = async {
            grpc.ready().await.map_err(|error| EtcdFailure::unsent(&error))?;
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            Ok::<_, EtcdFailure>(
                grpc.streaming(require_leader(Request::new(queue)), path, codec).await?.into_inner(),
            )
        };
        let start_timeout = if self.members() > 1 {
            LONG_HEDGE_DELAY.min(self.request_timeout)
        } else {
            self.request_timeout
        };
        match timeout(start_timeout, start).await.map_err(|_| EtcdFailure::TimedOut).flatten() {
            Ok(responses) => Ok(WatchStream { requests, responses, members: self.members.clone(), member }),
            Err(failure) => {
                self.members.switch_from(member);
                Err(failure)
            }
        }
    }
}

impl WatchStream {
    /// Returns the next response. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<WatchResponse, EtcdFailure> {
        let response = self.responses.message().await?;
        response.ok_or_else(|| Status::unavailable("the watch has ended").into())
    }

    /// Switches the client to another member.
    pub(super) fn switch_member(&self) {
        self.members.switch_from(self.member);
    }

    /// Returns the next response. Sends progress requests until there is one: etcd sends no progress for a watch
    /// that is not synchronized yet, and synchronizes watches that start in the past every 100 ms.
    pub(super) async fn next_or_progress(&mut self) -> Result<WatchResponse, EtcdFailure> {
        let mut asks = interval(PROGRESS_INTERVAL);
        loop {
            tokio::select! {
                response = self.next() => return response,
                _ = asks.tick() => self.request_progress(),
            }
        }
    }

    /// Requests a progress notification. A full queue already contains such a request.
    pub(super) fn request_progress(&self) {
        let request = WatchRequest { ask: Some(WatchAsk::Progress(WatchProgress {})) };
        let _as_good_as_queued = self.requests.try_send(request);
    }
}

/// Adds the header that makes a member without a leader reject the request or end the stream.
fn require_leader<T>(mut request: Request<T>) -> Request<T> {
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    request
}
