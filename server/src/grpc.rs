//! The gRPC services: adapters between generated messages and the other crates.

pub(crate) mod admin;
pub(crate) mod admission;
pub(crate) mod api_services;
pub(crate) mod audit_records;
pub(crate) mod catalog;
pub(crate) mod config;
pub(crate) mod definitions;
pub(crate) mod history;
pub(crate) mod objects;
mod rewrap;
pub(crate) mod routes;
mod store_copies;

use portico_controllers::storage_versions::StorageVersions;
use portico_machinery::{RequestInfo, Status};
use portico_proto::rpc_status::to_rpc;
use tonic::Request;

use crate::chain::Caller;

/// Result of a gRPC call.
pub(crate) type RpcResult<T> = Result<T, tonic::Status>;

/// Returns the caller that the chain has added to the request.
///
/// # Errors
/// UNAUTHENTICATED if there is none, that is, if the service was mounted without the chain.
pub(crate) fn caller<T>(request: &Request<T>) -> RpcResult<Caller> {
    request
        .extensions()
        .get::<Caller>()
        .cloned()
        .ok_or_else(|| tonic::Status::unauthenticated("the caller is not authenticated"))
}

/// Authorizes a request of the caller; errors are gRPC statuses.
pub(crate) async fn authorize(caller: &Caller, request: RequestInfo) -> RpcResult<()> {
    caller.authorize(request).await.map_err(|status| to_rpc(&status))
}

/// Authorizes a request that only the message describes, also if a facade forwards it.
pub(crate) async fn authorize_message(caller: &Caller, request: RequestInfo) -> RpcResult<()> {
    caller.authorize_message(request).await.map_err(|status| to_rpc(&status))
}

/// Gate in front of the services: refuses writes until storage versions are published, if they are published at all.
#[derive(Clone)]
pub(crate) struct WriteGate(pub(crate) Option<StorageVersions>);

impl WriteGate {
    /// Returns the refusal of a request; `None` if it is not blocked. The request is described only while the gate is closed.
    pub(crate) fn refusal(&self, caller: &Caller, request: impl FnOnce() -> RequestInfo) -> Option<Status> {
        let versions = self.0.as_ref().filter(|versions| !versions.reported().is_signaled())?;
        versions.refusal(&request(), caller.user())
    }
}

/// Converts a Kubernetes Status to a gRPC status.
pub(crate) fn to_grpc_status(status: impl Into<Box<Status>>) -> tonic::Status {
    to_rpc(&status.into())
}
