//! `portico.admin.v1`: administration of the control service.

use std::sync::Arc;

use portico_kit::metrics;
use portico_kit::tasks::TaskSet;
use portico_kit::telemetry::Telemetry;
use portico_machinery::Status;
use portico_proto::admin as pb;
use portico_proto::admin::admin_server::Admin;
use portico_store::Store;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response};

use super::{RpcResult, rewrap, store_copies, to_grpc_status};

/// Implementation of the service. The chain has authorized each method as a path.
pub(crate) struct AdminService {
    pub(crate) metrics: metrics::Registry,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) telemetry: Telemetry,
    pub(crate) tasks: TaskSet,
}

#[tonic::async_trait]
impl Admin for AdminService {
    type RewrapStream = ReceiverStream<RpcResult<pb::RewrapProgress>>;

    async fn rewrap(&self, _: Request<pb::RewrapRequest>) -> RpcResult<Response<Self::RewrapStream>> {
        rewrap::refuse_without_rules(&*self.store)?;
        let (progress, messages) = mpsc::channel(rewrap::QUEUE);
        self.tasks.spawn_until_cancelled("rewrap", rewrap::run(Arc::clone(&self.store), progress));
        Ok(Response::new(ReceiverStream::new(messages)))
    }

    async fn metrics(&self, _: Request<pb::MetricsRequest>) -> RpcResult<Response<pb::MetricsResponse>> {
        Ok(Response::new(pb::MetricsResponse { text: self.metrics.encode(metrics::Format::Text) }))
    }

    async fn set_log_level(
        &self,
        request: Request<pb::SetLogLevelRequest>,
    ) -> RpcResult<Response<pb::SetLogLevelResponse>> {
        let previous = self.telemetry.level();
        let filter = request.into_inner().filter;
        self.telemetry.set_level(&filter).map_err(|e| to_grpc_status(Status::bad_request(e.to_string())))?;
        Ok(Response::new(pb::SetLogLevelResponse { previous }))
    }

    async fn compact(
        &self,
        request: Request<pb::CompactRequest>,
    ) -> RpcResult<Response<pb::CompactResponse>> {
        let revision = match request.into_inner().revision {
            0 => self.store.revision(),
            revision => revision,
        };
        let oldest_revision = self
            .store
            .compact(revision)
            .await
            .map_err(|e| to_grpc_status(Status::unavailable(e.to_string())))?;
        Ok(Response::new(pb::CompactResponse { oldest_revision }))
    }

    async fn describe_log(
        &self,
        request: Request<pb::DescribeLogRequest>,
    ) -> RpcResult<Response<pb::DescribeLogResponse>> {
        store_copies::describe(&*self.store, request.into_inner().time).await
    }

    async fn read_states(
        &self,
        request: Request<pb::ReadStatesRequest>,
    ) -> RpcResult<Response<pb::ReadStatesResponse>> {
        store_copies::states(&*self.store, request.into_inner()).await
    }

    async fn read_changes(
        &self,
        request: Request<pb::ReadChangesRequest>,
    ) -> RpcResult<Response<pb::ReadChangesResponse>> {
        store_copies::changes(&*self.store, request.into_inner().after).await
    }

    async fn read_archive(
        &self,
        request: Request<pb::ReadArchiveRequest>,
    ) -> RpcResult<Response<pb::ReadArchiveResponse>> {
        store_copies::archive(&*self.store, request.into_inner()).await
    }

    async fn set_read_only(
        &self,
        request: Request<pb::SetReadOnlyRequest>,
    ) -> RpcResult<Response<pb::SetReadOnlyResponse>> {
        store_copies::set_read_only(&self.store, request.into_inner()).await
    }
}
