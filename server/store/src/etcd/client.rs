//! Requests to etcd's members, each given up when it is late. What may be asked twice is asked of the next member as soon as one
//! fails or lets wait; a write is asked once, unless it surely was not taken.

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

/// How long a member may take for one key until another one is asked, too.
const PATIENCE: Duration = Duration::from_millis(500);
/// The same for what may be large, and for the beginning of a watch.
const LONG_PATIENCE: Duration = Duration::from_secs(2);
/// How long members may be without a leader until that is an answer, and how often they are asked meanwhile.
const ELECTION: Duration = Duration::from_secs(3);
const ELECTION_PAUSE: Duration = Duration::from_millis(50);
/// How often it is asked how far everything has been sent, while somebody waits for that.
pub(super) const PROGRESS: Duration = Duration::from_millis(20);
/// How many requests of one watch wait to be sent.
const WATCH_REQUESTS: usize = 4;

/// Who asks.
#[derive(Clone)]
pub(super) struct Client {
    members: Arc<Members>,
    within: Duration,
    reached: Arc<AtomicBool>,
}

/// A running watch.
pub(super) struct WatchStream {
    requests: mpsc::Sender<WatchRequest>,
    responses: Streaming<WatchResponse>,
    members: Arc<Members>,
    member: usize,
}

impl Client {
    /// One that connects when it is asked.
    pub(super) fn new(settings: &EtcdSettings) -> Result<Self, Failure> {
        let members = Arc::new(Members::new(settings).map_err(Failure::Settings)?);
        Ok(Self { members, within: settings.request_timeout, reached: Arc::new(AtomicBool::new(true)) })
    }

    /// How many members there are.
    pub(super) fn members(&self) -> usize {
        self.members.count()
    }

    /// Notes whether etcd can be reached, as far as the one who follows it knows.
    pub(super) fn set_reached(&self, reached: bool) {
        self.reached.store(reached, Ordering::Release);
    }

    /// Nothing is asked while etcd cannot be reached.
    fn check_reached(&self) -> Result<(), Failure> {
        if self.reached.load(Ordering::Acquire) { Ok(()) } else { Err(Failure::Away) }
    }

    /// Asks one member.
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

    /// Asks what may be asked twice, over a change of leaders.
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

    /// Asks the member in use and, whenever one fails or lets wait, the next one as well: the first answer.
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
                    // Who hangs is not waited for when the others have just chosen another leader.
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

    /// Uses another member from now on, if this one is to blame.
    fn leave(&self, member: usize, failure: &Failure) {
        if failure.is_of_member() && !failure.is_of_change() {
            self.members.leave(member);
        }
    }

    /// Asks once, of the member in use; of another one only if it surely was not taken.
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

    /// Gives up what takes too long.
    pub(super) async fn in_time<T>(
        &self,
        step: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout(self.within, step).await.map_err(|_| Failure::Late)?
    }

    /// The keys and values of a request.
    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Failure> {
        self.check_reached()?;
        self.probe(request).await
    }

    /// The same when etcd may not be reachable: by the one who finds out.
    pub(super) async fn probe(&self, request: RangeRequest) -> Result<RangeResponse, Failure> {
        let patience = if request.range_end.is_empty() { PATIENCE } else { LONG_PATIENCE };
        self.ask_any("/etcdserverpb.KV/Range", request, patience).await
    }

    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Failure> {
        self.check_reached()?;
        self.txn_anyway(request).await
    }

    /// The same when etcd may not be reachable.
    pub(super) async fn txn_anyway(&self, request: TxnRequest) -> Result<TxnResponse, Failure> {
        self.ask_once("/etcdserverpb.KV/Txn", request).await
    }

    pub(super) async fn compact(&self, revision: i64) -> Result<(), Failure> {
        self.check_reached()?;
        let request = CompactionRequest { revision };
        let done = self.ask_any("/etcdserverpb.KV/Compact", request, LONG_PATIENCE).await;
        done.map(|_: CompactionResponse| ())
    }

    /// A lease that ends after some seconds.
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

    /// A watch of a range from a revision on, with the states before.
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
    /// The next response. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<WatchResponse, Failure> {
        let response = self.responses.message().await?;
        response.ok_or_else(|| Status::unavailable("the watch has ended").into())
    }

    /// Another member is used from now on.
    pub(super) fn leave(&self) {
        self.members.leave(self.member);
    }

    /// The next response. A report of how far everything has been sent is asked for until there is one: etcd gives none of a watch
    /// that it still brings up to date, and looks ten times a second after watches that begin in the past.
    pub(super) async fn next_or_progress(&mut self) -> Result<WatchResponse, Failure> {
        let mut asks = interval(PROGRESS);
        loop {
            tokio::select! {
                response = self.next() => return response,
                _ = asks.tick() => self.request_progress(),
            }
        }
    }

    /// Asks how far everything has been sent; one that cannot be queued is like one that waits already.
    pub(super) fn request_progress(&self) {
        let ask = WatchRequest { ask: Some(WatchAsk::Progress(WatchProgress {})) };
        let _as_good_as_queued = self.requests.try_send(ask);
    }
}

/// Only a member that has a leader may answer, and goes on to.
fn leading<T>(mut request: Request<T>) -> Request<T> {
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    request
}
