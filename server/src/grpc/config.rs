//! `portico.config.v1`: configuration streams, state and certificates of facades.

pub(crate) mod board;
mod facade_reports;
pub(crate) mod facades;
mod feed;
mod ping;
mod sign;
mod sources;
mod watcher;

pub(crate) use ping::PingResponder;
pub(crate) use sources::StreamSources;
pub(crate) use watcher::OwnCertificates;

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use portico_kit::pki::Authority;
use portico_kit::tasks::TaskSet;
use portico_proto::config as pb;
use portico_proto::config::config_server::Config;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Streaming};

use super::{RpcResult, caller};
use crate::listen::ConnectionInfo;
use facades::Facades;
use feed::ConfigFeed;
use watcher::Watcher;

/// Messages of up to 1 MiB that wait for one facade.
///
/// Limit (Facades and control services): its feed waits and sends a larger delta, or a snapshot.
const STREAM_QUEUE: usize = 4;

/// Implementation of the service.
pub(crate) struct ConfigService {
    pub(crate) sources: Arc<StreamSources>,
    pub(crate) facades: Facades,
    pub(crate) authority: Arc<Authority>,
    /// CA of front proxies, if Portico created it.
    pub(crate) front_proxy: Option<Arc<Authority>>,
    pub(crate) tasks: TaskSet,
    pub(crate) pings: PingResponder,
    /// Certificates that this control service uses.
    pub(crate) own_certificates: OwnCertificates,
}

#[tonic::async_trait]
impl Config for ConfigService {
    type StreamStream = Pin<Box<dyn Stream<Item = RpcResult<pb::StreamResponse>> + Send>>;
    type WatchFacadesStream = ReceiverStream<RpcResult<pb::WatchFacadesResponse>>;

    async fn stream(
        &self,
        request: Request<Streaming<pb::StreamRequest>>,
    ) -> RpcResult<Response<Self::StreamStream>> {
        let peer = caller(&request)?.facade_name().unwrap_or_default().to_owned();
        let address = request
            .extensions()
            .get::<ConnectionInfo>()
            .map_or_else(|| peer.clone(), |c| c.address.to_string());
        let inbound = request.into_inner();
        let (outbound, messages) = mpsc::channel(STREAM_QUEUE);
        let (sources, facades) = (Arc::clone(&self.sources), self.facades.clone());
        let feed = ConfigFeed { sources, facades, peer, address, outbound };
        self.tasks.spawn_until_cancelled("config-stream", feed.run(inbound));
        Ok(Response::new(Box::pin(ReceiverStream::new(messages))))
    }

    async fn facades(&self, _: Request<pb::FacadesRequest>) -> RpcResult<Response<pb::FacadesResponse>> {
        let revision = self.sources.publisher().revision();
        Ok(Response::new(pb::FacadesResponse { facades: self.facades.list(revision) }))
    }

    async fn watch_facades(
        &self,
        _: Request<pb::WatchFacadesRequest>,
    ) -> RpcResult<Response<Self::WatchFacadesStream>> {
        let (outbound, messages) = mpsc::channel(STREAM_QUEUE);
        let (facades, sources) = (self.facades.clone(), Arc::clone(&self.sources));
        let watcher = Watcher { facades, sources, own: Arc::clone(&self.own_certificates), outbound };
        self.tasks.spawn_until_cancelled("watch-facades", watcher.run());
        Ok(Response::new(ReceiverStream::new(messages)))
    }

    async fn sign(&self, request: Request<pb::SignRequest>) -> RpcResult<Response<pb::SignResponse>> {
        let facade = caller(&request)?.facade_name().unwrap_or_default().to_owned();
        let signers = sign::Signers { internal: &self.authority, front_proxy: self.front_proxy.as_deref() };
        signers.sign(&facade, &request.into_inner()).map(Response::new)
    }

    async fn ping(&self, request: Request<pb::PingRequest>) -> RpcResult<Response<pb::PingResponse>> {
        let answer = self.pings.answer(&self.sources, &self.facades, request.into_inner().at_least);
        Ok(Response::new(answer.await))
    }
}
