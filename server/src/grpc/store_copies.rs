//! `Admin.DescribeLog`, `ReadStates`, `ReadChanges`, `ReadArchive` and `SetReadOnly`: copies of a store that is in use.

use std::sync::Arc;

use portico_machinery::Status;
use portico_proto::admin as pb;
use portico_store::{ArchiveCursor, CopyError, Key, Resource, Store, StoreSwitch, StoredState, WriteSwitch};
use tonic::Response;

use super::{RpcResult, to_grpc_status};

fn unavailable(error: CopyError) -> tonic::Status {
    to_grpc_status(Status::unavailable(error.to_string()))
}

/// Describes the identity of the store and the extent of its log.
pub(super) async fn describe(store: &dyn Store, time: i64) -> RpcResult<Response<pb::DescribeLogResponse>> {
    let source = store.copy_source();
    let extent = source.extent().await.map_err(unavailable)?;
    let revision_at_time = match time {
        0 => 0,
        time => source.revision_at(time).await.map_err(unavailable)?,
    };
    Ok(Response::new(pb::DescribeLogResponse {
        store_id: extent.identity.store_id,
        epoch: extent.identity.epoch,
        revision: extent.revision,
        oldest_revision: extent.oldest,
        revision_at_time,
    }))
}

/// Returns the next objects of a revision.
pub(super) async fn states(
    store: &dyn Store,
    request: pb::ReadStatesRequest,
) -> RpcResult<Response<pb::ReadStatesResponse>> {
    let after = request
        .after
        .map(|after| Key::new(&Resource::new(after.group, after.resource), &after.namespace, &after.name));
    match store.copy_source().states(request.revision, after.as_ref()).await {
        Ok(states) => {
            let states = StoredState::encode_all(states);
            Ok(Response::new(pb::ReadStatesResponse { states, oldest_revision: 0 }))
        }
        Err(CopyError::Compacted { oldest, .. }) => {
            Ok(Response::new(pb::ReadStatesResponse { states: Vec::new(), oldest_revision: oldest }))
        }
        Err(error) => Err(unavailable(error)),
    }
}

/// Returns the next part of the log.
pub(super) async fn changes(store: &dyn Store, after: i64) -> RpcResult<Response<pb::ReadChangesResponse>> {
    match store.copy_source().changes(after).await {
        Ok(changes) => Ok(Response::new(pb::ReadChangesResponse {
            states: StoredState::encode_all(changes.states),
            until: changes.until,
            revision: changes.revision,
            oldest_revision: 0,
        })),
        Err(CopyError::Compacted { oldest, .. }) => {
            Ok(Response::new(pb::ReadChangesResponse { oldest_revision: oldest, ..Default::default() }))
        }
        Err(error) => Err(unavailable(error)),
    }
}

/// Returns the next part of the archive.
pub(super) async fn archive(
    store: &dyn Store,
    request: pb::ReadArchiveRequest,
) -> RpcResult<Response<pb::ReadArchiveResponse>> {
    let pb::ReadArchiveRequest { revision, after_until, after_revision, after_mark } = request;
    let after = ArchiveCursor { until: after_until, revision: after_revision, mark: after_mark };
    let part = store.copy_source().archive(revision, after).await.map_err(unavailable)?;
    Ok(Response::new(pb::ReadArchiveResponse { part: part.encode() }))
}

/// Stops or resumes writes.
pub(super) async fn set_read_only(
    store: &Arc<dyn Store>,
    request: pb::SetReadOnlyRequest,
) -> RpcResult<Response<pb::SetReadOnlyResponse>> {
    let switch = StoreSwitch(Arc::clone(store));
    let reason = request.read_only.then_some(&*request.reason);
    let revision = switch.set_read_only(reason).await.map_err(unavailable)?;
    Ok(Response::new(pb::SetReadOnlyResponse { revision }))
}
