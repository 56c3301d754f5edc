//! The services: each a thin adapter between generated messages and a crate.

pub(crate) mod admin;
pub(crate) mod admission;
pub(crate) mod api_services;
pub(crate) mod catalog;
pub(crate) mod config;
mod copies;
pub(crate) mod definitions;
pub(crate) mod history;
pub(crate) mod objects;
pub(crate) mod recorded;
mod rewrap;
pub(crate) mod routes;

use portico_controllers::storage_versions::StorageVersions;
use portico_machinery::{RequestInfo, Status};
use portico_proto::rpc_status::to_rpc;
use tonic::Request;

use crate::chain::Caller;

/// A gRPC failure, boxed: it is large and rare.
pub(crate) type RpcResult<T> = Result<T, tonic::Status>;

/// The caller that the chain left.
///
/// # Errors
/// UNAUTHENTICATED when there is none: a service that was mounted without the chain serves nobody.
pub(crate) fn caller<T>(request: &Request<T>) -> RpcResult<Caller> {
    request
        .extensions()
        .get::<Caller>()
        .cloned()
        .ok_or_else(|| tonic::Status::unauthenticated("the caller is not authenticated"))
}

/// Asks the caller's authorizer, as gRPC.
pub(crate) async fn authorize(caller: &Caller, request: RequestInfo) -> RpcResult<()> {
    caller.authorize(request).await.map_err(|status| to_rpc(&status))
}

/// The same of what only a message names, whoever brings it.
pub(crate) async fn authorize_message(caller: &Caller, request: RequestInfo) -> RpcResult<()> {
    caller.authorize_message(request).await.map_err(|status| to_rpc(&status))
}

/// The last filter before a service: writes wait until storage versions are published, where they are.
#[derive(Clone)]
pub(crate) struct Hold(pub(crate) Option<StorageVersions>);

impl Hold {
    /// Why the request cannot be served yet; what it is is asked only while something is held.
    pub(crate) fn refusal(&self, caller: &Caller, request: impl FnOnce() -> RequestInfo) -> Option<Status> {
        let versions = self.0.as_ref().filter(|versions| !versions.reported().is_signaled())?;
        versions.refusal(&request(), caller.user())
    }
}

/// A Kubernetes refusal as gRPC.
pub(crate) fn refused(status: impl Into<Box<Status>>) -> tonic::Status {
    to_rpc(&status.into())
}
