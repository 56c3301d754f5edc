//! A control service whose behavior a test scripts.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use portico_auth::forwarded::LocalTrust;
use portico_facade::ControlTransport;
use portico_proto::catalog::catalog_server::{Catalog, CatalogServer};
use portico_proto::catalog::{GetRequest, GetResponse};
use portico_proto::config::config_server::{Config, ConfigServer};
use portico_proto::config::stream_request::Message as RequestMessage;
use portico_proto::config::{self as pb, stream_response::Message as ResponseMessage};
use portico_proto::convert::{Entry, Version};
use portico_proto::identity::ForwardedCaller;
use portico_proto::objects::objects_server::{Objects, ObjectsServer};
use portico_proto::objects::{
    ConnectRequest, ConnectResponse, DoRequest, DoResponse, ListRequest, ListResponse, ResourcesRequest,
    ResourcesResponse, WatchRequest, WatchResponse,
};
use tokio::sync::{broadcast, watch};
use tonic::{Request, Response, Status};

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Received call with its metadata.
#[derive(Clone, Debug)]
pub struct ReceivedCall {
    pub call: portico_proto::objects::Call,
    pub forwarded: ForwardedCaller,
    pub trusted: bool,
}

/// Scripted control service. Clones share its state.
#[derive(Clone)]
pub struct ScriptedControl {
    inner: Arc<Inner>,
}

struct Inner {
    snapshot: Mutex<Vec<Entry>>,
    deltas: broadcast::Sender<pb::StreamResponse>,
    acks: watch::Sender<Vec<pb::Ack>>,
    is_away: watch::Sender<bool>,
    is_stopped: watch::Sender<bool>,
    heartbeat: Mutex<u32>,
    answers: Mutex<VecDeque<DoResponse>>,
    parts: Mutex<Vec<Bytes>>,
    frames: broadcast::Sender<WatchResponse>,
    received: Mutex<Vec<ReceivedCall>>,
    documents: Mutex<HashMap<String, Bytes>>,
    revision: Mutex<i64>,
    /// Response to pings; `None` like a release without pings.
    ping: Mutex<Option<pb::PingResponse>>,
    /// Revision that the last ping waited for.
    waited_for: watch::Sender<i64>,
    /// Number of parts after which lists break off.
    list_breaks_after: Mutex<Option<usize>>,
}

impl ScriptedControl {
    pub fn new(snapshot: Vec<Entry>) -> Self {
        let inner = Inner {
            snapshot: Mutex::new(snapshot),
            deltas: broadcast::channel(64).0,
            acks: watch::channel(Vec::new()).0,
            is_away: watch::channel(false).0,
            is_stopped: watch::channel(false).0,
            heartbeat: Mutex::default(),
            answers: Mutex::default(),
            parts: Mutex::default(),
            frames: broadcast::channel(4096).0,
            received: Mutex::default(),
            documents: Mutex::default(),
            revision: Mutex::new(1),
            ping: Mutex::default(),
            waited_for: watch::channel(0).0,
            list_breaks_after: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns an in-process transport, as the all-in-one uses.
    pub fn transport(&self) -> ControlTransport {
        let routes = tonic::service::Routes::new(ConfigServer::new(self.clone()))
            .add_service(ObjectsServer::new(self.clone()))
            .add_service(CatalogServer::new(self.clone()))
            .prepare();
        ControlTransport::local(routes, LocalTrust::issue().0)
    }

    pub fn push_answer(&self, answer: DoResponse) {
        self.inner.answers.lock().push_back(answer);
    }

    pub fn set_list_parts(&self, parts: Vec<Bytes>) {
        *self.inner.parts.lock() = parts;
    }

    pub fn add_document(&self, hash: &str, bytes: Bytes) {
        self.inner.documents.lock().insert(hash.to_owned(), bytes);
    }

    /// Sends a watch frame to all watches. Returns false if there is none.
    pub fn frame(&self, bytes: impl Into<Bytes>) -> bool {
        self.frame_at(bytes, 0, false)
    }

    /// Sends a frame with a resume revision; `more` if events of the same revision may follow.
    pub fn frame_at(&self, bytes: impl Into<Bytes>, revision: i64, more: bool) -> bool {
        let step = Some(portico_proto::objects::watch_response::Step::Frames(bytes.into()));
        self.inner.frames.send(WatchResponse { step, revision, more }).is_ok()
    }

    pub fn received_calls(&self) -> Vec<ReceivedCall> {
        self.inner.received.lock().clone()
    }

    /// Changes the configuration, and resolves when the facade has acknowledged the change.
    pub async fn change(&self, entries: Vec<Entry>) -> pb::Ack {
        let revision = {
            let mut revision = self.inner.revision.lock();
            *revision += 1;
            *revision
        };
        for entry in &entries {
            let mut snapshot = self.inner.snapshot.lock();
            snapshot.retain(|e| (e.kind, &e.key) != (entry.kind, &entry.key));
            if entry.payload.is_some() {
                snapshot.push(entry.clone());
            }
        }
        let entries = entries.iter().map(Into::into).collect();
        self.send_raw(pb::Entries { version: Some(version(revision)), entries });
        self.wait_for_ack(revision).await
    }

    pub fn send_raw(&self, entries: pb::Entries) {
        let _ =
            self.inner.deltas.send(pb::StreamResponse { message: Some(ResponseMessage::Entries(entries)) });
    }

    pub async fn wait_for_ack(&self, revision: i64) -> pb::Ack {
        let is = |ack: &&pb::Ack| ack.version.as_ref().is_some_and(|v| v.revision >= revision);
        let mut acks = self.inner.acks.subscribe();
        let acks = acks.wait_for(|acks| acks.iter().any(|a| is(&a))).await.unwrap();
        acks.iter().find(is).unwrap().clone()
    }

    /// Responds to pings from now on, with this store and revision.
    pub fn set_ping(&self, store_id: &str, revision: i64) {
        let version = pb::Version { store_id: store_id.into(), epoch: "epoch".into(), revision };
        let answer = pb::PingResponse { version: Some(version), serving: true, ..Default::default() };
        *self.inner.ping.lock() = Some(answer);
    }

    /// Resolves when a ping has waited for this revision.
    pub async fn wait_for_ping(&self, revision: i64) {
        self.inner.waited_for.subscribe().wait_for(|waited| *waited == revision).await.unwrap();
    }

    /// Sets the revision of lists; the next one breaks off after this many parts.
    pub fn set_list_revision(&self, revision: i64, breaks_after: usize) {
        *self.inner.revision.lock() = revision;
        *self.inner.list_breaks_after.lock() = Some(breaks_after);
    }

    /// Ends all streams and refuses all calls, or resumes.
    pub fn set_away(&self, away: bool) {
        self.inner.is_away.send_replace(away);
    }

    /// Keeps connections open without responding (except to messages that a test sends over open streams), or resumes.
    pub fn set_stopped(&self, stopped: bool) {
        self.inner.is_stopped.send_replace(stopped);
    }

    /// Announces this heartbeat interval to new streams, and sends no heartbeats.
    pub fn announce_heartbeat(&self, heartbeat: std::time::Duration) {
        *self.inner.heartbeat.lock() = u32::try_from(heartbeat.as_millis()).unwrap();
    }

    async fn until_resumed(&self) {
        // The sender lives as long as `self`.
        let _ = self.inner.is_stopped.subscribe().wait_for(|stopped| !stopped).await;
    }

    fn check_available(&self) -> Result<(), Status> {
        if *self.inner.is_away.borrow() { Err(Status::unavailable("connection refused")) } else { Ok(()) }
    }

    fn record_call<T>(
        &self,
        request: &Request<T>,
        call: Option<portico_proto::objects::Call>,
    ) -> Result<(), Status> {
        self.check_available()?;
        let forwarded = ForwardedCaller::read(request.metadata()).unwrap().unwrap();
        let trusted = request.extensions().get::<LocalTrust>().is_some();
        self.inner.received.lock().push(ReceivedCall { call: call.unwrap(), forwarded, trusted });
        Ok(())
    }
}

pub fn version(revision: i64) -> pb::Version {
    (&Version { store_id: "store".into(), epoch: "epoch".into(), revision }).into()
}

#[tonic::async_trait]
impl Config for ScriptedControl {
    type StreamStream = Answers<pb::StreamResponse>;
    type WatchFacadesStream = Answers<pb::WatchFacadesResponse>;

    async fn watch_facades(
        &self,
        _: Request<pb::WatchFacadesRequest>,
    ) -> Result<Response<Self::WatchFacadesStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn stream(
        &self,
        request: Request<tonic::Streaming<pb::StreamRequest>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        self.check_available()?;
        self.until_resumed().await;
        let heartbeat_millis = *self.inner.heartbeat.lock();
        let mut requests = request.into_inner();
        let hello = requests.message().await?.and_then(|m| m.message);
        assert!(matches!(hello, Some(RequestMessage::Hello(_))), "{hello:?}");
        let deltas = tokio_stream::wrappers::BroadcastStream::new(self.inner.deltas.subscribe());
        let version = version(*self.inner.revision.lock());
        let entries = self.inner.snapshot.lock().iter().map(Into::into).collect();
        let response = |message| Ok(pb::StreamResponse { message: Some(message) });
        let snapshot = stream::iter([
            response(ResponseMessage::Begin(pb::Begin { version: Some(version.clone()), heartbeat_millis })),
            response(ResponseMessage::Entries(pb::Entries { version: None, entries })),
            response(ResponseMessage::End(pb::End { version: Some(version) })),
        ]);
        let inner = self.inner.clone();
        let acks = stream::poll_fn(move |cx| {
            while let std::task::Poll::Ready(Some(Ok(request))) = requests.poll_next_unpin(cx) {
                if let Some(RequestMessage::Ack(ack)) = request.message {
                    inner.acks.send_modify(|acks| acks.push(ack));
                }
            }
            std::task::Poll::<Option<Result<pb::StreamResponse, Status>>>::Pending
        });
        let mut away = self.inner.is_away.subscribe();
        let is_disconnected = async move {
            let _ = away.wait_for(|away| *away).await;
        };
        let deltas = deltas.filter_map(|delta| async { delta.ok().map(Ok) });
        let all = stream::select(snapshot.chain(deltas), acks).take_until(is_disconnected);
        Ok(Response::new(Box::pin(all)))
    }

    async fn facades(&self, _: Request<pb::FacadesRequest>) -> Result<Response<pb::FacadesResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn sign(&self, _: Request<pb::SignRequest>) -> Result<Response<pb::SignResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn ping(&self, request: Request<pb::PingRequest>) -> Result<Response<pb::PingResponse>, Status> {
        self.check_available()?;
        let at_least = request.into_inner().at_least;
        if at_least > 0 {
            self.inner.waited_for.send_replace(at_least);
        }
        let answer = self.inner.ping.lock().clone();
        answer.map(Response::new).ok_or_else(|| Status::unimplemented(""))
    }
}

/// Response of a control service for resources that are not scripted.
const NOT_FOUND: &str = "404 page not found\n";
const TEXT: &str = "text/plain; charset=utf-8";

#[tonic::async_trait]
impl Objects for ScriptedControl {
    type ListStream = Answers<ListResponse>;
    type WatchStream = Answers<WatchResponse>;

    async fn r#do(&self, request: Request<DoRequest>) -> Result<Response<DoResponse>, Status> {
        self.record_call(&request, request.get_ref().call.clone())?;
        self.until_resumed().await;
        let answer = self.inner.answers.lock().pop_front();
        Ok(Response::new(answer.unwrap_or_else(|| DoResponse {
            code: 404,
            media_type: TEXT.to_owned(),
            body: NOT_FOUND.into(),
            unrouted: true,
            ..Default::default()
        })))
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<Self::ListStream>, Status> {
        self.record_call(&request, request.get_ref().call.clone())?;
        self.until_resumed().await;
        let breaks_after = self.inner.list_breaks_after.lock().take();
        let parts = match breaks_after {
            // The list is complete when it is repeated.
            Some(_) => self.inner.parts.lock().clone(),
            None => std::mem::take(&mut *self.inner.parts.lock()),
        };
        let parts = parts.into_iter().enumerate();
        let parts = parts.map(|(at, body)| {
            let media_type = if at == 0 { "application/json".to_owned() } else { String::new() };
            let revision = *self.inner.revision.lock();
            let code = if at == 0 { 200 } else { 0 };
            Ok(ListResponse { code, body, media_type, revision, ..Default::default() })
        });
        let mut parts: Vec<_> = parts.collect();
        if let Some(parts_before) = breaks_after {
            parts.truncate(parts_before);
            parts.push(Err(Status::unavailable("the connection broke")));
        }
        if parts.is_empty() {
            let (body, media_type) = (NOT_FOUND.into(), TEXT.to_owned());
            parts.push(Ok(ListResponse {
                code: 404,
                body,
                media_type,
                unrouted: true,
                ..Default::default()
            }));
        }
        Ok(Response::new(Box::pin(stream::iter(parts))))
    }

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        use portico_proto::objects::watch_response::Step;
        self.record_call(&request, request.get_ref().call.clone())?;
        self.until_resumed().await;
        if let Some(refused) = self.inner.answers.lock().pop_front() {
            let step = Some(Step::Refused(refused));
            return Ok(Response::new(Box::pin(stream::iter([Ok(WatchResponse {
                step,
                ..Default::default()
            })]))));
        }
        let started = portico_proto::objects::WatchStarted {
            media_type: "application/json".into(),
            warnings: vec!["old".into()],
            audit_annotations: HashMap::new(),
            initial_frames: 0,
            revision: 0,
        };
        let frames = tokio_stream::wrappers::BroadcastStream::new(self.inner.frames.subscribe());
        let frames = frames.filter_map(|frame| async { frame.ok().map(Ok) });
        let begin = WatchResponse { step: Some(Step::Started(started)), ..Default::default() };
        let begin = stream::iter([Ok(begin)]);
        Ok(Response::new(Box::pin(begin.chain(frames))))
    }

    async fn connect(&self, _: Request<ConnectRequest>) -> Result<Response<ConnectResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn resources(&self, _: Request<ResourcesRequest>) -> Result<Response<ResourcesResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl Catalog for ScriptedControl {
    type GetStream = Answers<GetResponse>;

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<Self::GetStream>, Status> {
        self.check_available()?;
        let hash = &request.get_ref().hash;
        let document = self.inner.documents.lock().get(hash).cloned();
        let document = document.ok_or_else(|| Status::not_found("no entry names it"))?;
        let parts = document.chunks(7).map(|c| Ok(GetResponse { part: Bytes::copy_from_slice(c) }));
        Ok(Response::new(Box::pin(stream::iter(parts.collect::<Vec<_>>()))))
    }
}
