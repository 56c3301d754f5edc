//! Requests to etcd's members, each given up when it is late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::failure::Failure;
use super::keys::KeyRange;
use super::settings::EtcdSettings;
use super::wire::{
    CompactionRequest, CompactionResponse, LeaseGrantRequest, LeaseGrantResponse, RangeRequest,
    RangeResponse, StatusRequest, StatusResponse, TxnRequest, TxnResponse, WatchAsk, WatchCreate,
    WatchProgress, WatchRequest, WatchResponse,
};

/// How large one answer may be.
const MAX_MESSAGE: usize = 512 << 20;
/// How often a connection is looked after, and how long it has to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// How much of one answer, and of all, may be under way.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// How many requests of one watch wait to be sent.
const WATCH_REQUESTS: usize = 4;

/// Who asks.
#[derive(Clone)]
pub(super) struct Client {
    channel: Channel,
    within: Duration,
    reached: Arc<AtomicBool>,
}

/// A running watch.
pub(super) struct WatchStream {
    requests: mpsc::Sender<WatchRequest>,
    responses: Streaming<WatchResponse>,
}

impl Client {
    /// One that connects when it is asked.
    pub(super) fn new(settings: &EtcdSettings) -> Result<Self, Failure> {
        let endpoints = settings.endpoints.iter().map(|url| endpoint(url, settings));
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>().map_err(Failure::Settings)?;
        let channel = Channel::balance_list(endpoints.into_iter());
        Ok(Self { channel, within: settings.request_timeout, reached: Arc::new(AtomicBool::new(true)) })
    }

    /// Notes whether etcd can be reached, as far as the one who follows it knows.
    pub(super) fn set_reached(&self, reached: bool) {
        self.reached.store(reached, Ordering::Release);
    }

    /// Gives up what takes too long; nothing is asked while etcd cannot be reached.
    async fn unary<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        if !self.reached.load(Ordering::Acquire) {
            return Err(Failure::Away);
        }
        self.unary_anyway(path, request).await
    }

    async fn unary_anyway<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = self.grpc();
        let asked = async {
            grpc.ready().await.map_err(|error| Failure::Unsent(error.to_string()))?;
            let codec = ProstCodec::<Q, A>::default();
            let answer =
                grpc.unary(leading(Request::new(request)), PathAndQuery::from_static(path), codec).await;
            Ok(answer?.into_inner())
        };
        self.in_time(asked).await
    }

    /// Gives up what takes too long.
    pub(super) async fn in_time<T>(
        &self,
        step: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout(self.within, step).await.map_err(|_| Failure::Late)?
    }

    fn grpc(&self) -> Grpc<Channel> {
        let grpc = Grpc::new(self.channel.clone());
        grpc.max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE)
    }

    /// The keys and values of a request.
    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Failure> {
        self.unary("/etcdserverpb.KV/Range", request).await
    }

    /// The same when etcd may not be reachable: by the one who finds out.
    pub(super) async fn probe(&self, request: RangeRequest) -> Result<RangeResponse, Failure> {
        self.unary_anyway("/etcdserverpb.KV/Range", request).await
    }

    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Failure> {
        self.unary("/etcdserverpb.KV/Txn", request).await
    }

    /// The same when etcd may not be reachable.
    pub(super) async fn txn_anyway(&self, request: TxnRequest) -> Result<TxnResponse, Failure> {
        self.unary_anyway("/etcdserverpb.KV/Txn", request).await
    }

    pub(super) async fn compact(&self, revision: i64) -> Result<(), Failure> {
        let request = CompactionRequest { revision };
        self.unary("/etcdserverpb.KV/Compact", request).await.map(|_: CompactionResponse| ())
    }

    /// A lease that ends after some seconds.
    pub(super) async fn grant(&self, ttl: i64) -> Result<i64, Failure> {
        let request = LeaseGrantRequest { ttl };
        let granted: LeaseGrantResponse = self.unary("/etcdserverpb.Lease/LeaseGrant", request).await?;
        if granted.error.is_empty() { Ok(granted.id) } else { Err(Status::unavailable(granted.error).into()) }
    }

    pub(super) async fn status(&self) -> Result<StatusResponse, Failure> {
        self.unary("/etcdserverpb.Maintenance/Status", StatusRequest {}).await
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
        let mut grpc = self.grpc();
        let asked = async {
            grpc.ready().await.map_err(|error| Failure::Unsent(error.to_string()))?;
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            Ok::<_, Failure>(grpc.streaming(leading(Request::new(queue)), path, codec).await?.into_inner())
        };
        let responses = self.in_time(asked).await?;
        Ok(WatchStream { requests, responses })
    }
}

impl WatchStream {
    /// The next response. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<WatchResponse, Failure> {
        let response = self.responses.message().await?;
        response.ok_or_else(|| Status::unavailable("the watch has ended").into())
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

fn endpoint(url: &str, settings: &EtcdSettings) -> Result<Endpoint, String> {
    let wrong = |error: tonic::transport::Error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        format!("{url:?}: {error}{}", cause.unwrap_or_default())
    };
    let with_scheme = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let endpoint = Endpoint::from_shared(with_scheme.clone())
        .map_err(wrong)?
        .connect_timeout(settings.connect_timeout)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .tcp_nodelay(true);
    if !with_scheme.starts_with("https://") {
        return Ok(endpoint);
    }
    let mut tls = ClientTlsConfig::new();
    tls = match &settings.ca {
        Some(ca) => tls.ca_certificate(Certificate::from_pem(ca)),
        None => tls.with_enabled_roots(),
    };
    if let Some((certificate, key)) = &settings.identity {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    endpoint.tls_config(tls).map_err(wrong)
}
