//! `Admin.Rewrap`: writes values again that are not sealed with the first provider of their resource.
//!
//! An interrupted call is continued by the next one, which looks for values that remain. Objects get new resource versions,
//! as from a write without changes. A concurrent write of an object takes precedence and has sealed it as well. Past states
//! keep their versions.

use std::sync::Arc;

use portico_machinery::Status;
use portico_proto::admin as pb;
use portico_store::{ArchiveCursor, Key, Resource, StaleSeals, Store, Txn, TxnError};
use tokio::sync::mpsc;

use super::{RpcResult, to_grpc_status};

/// Number of objects that are written with one sync to disk.
const BATCH: usize = 100;
/// Maximum number of progress messages that wait for the caller.
pub(super) const QUEUE: usize = 16;

type ProgressSender = mpsc::Sender<RpcResult<pb::RewrapProgress>>;

/// Refuses the call if no rules for encryption are configured, because it would remove the history without effect. Rules with the
/// identity provider count as rules.
pub(super) fn refuse_without_rules(store: &dyn Store) -> RpcResult<()> {
    if store.has_seal_rules() {
        return Ok(());
    }
    let text =
        "encryption at rest is not configured: the control service has no --encryption-provider-config";
    Err(tonic::Status::failed_precondition(text))
}

/// Rewraps all resources; ends early if the caller disconnects.
pub(super) async fn run(store: Arc<dyn Store>, progress: ProgressSender) {
    if let Err(status) = rewrap(&*store, &progress).await {
        // The send fails if the caller has disconnected.
        let _is_closed = progress.send(Err(to_grpc_status(status))).await;
    }
}

async fn rewrap(store: &dyn Store, progress: &ProgressSender) -> Result<(), Status> {
    let unavailable = |error: portico_store::StoreError| Status::unavailable(error.to_string());
    for resource in store.sealed_resources() {
        let found = store.stale_seals(&resource).await.map_err(unavailable)?;
        if !rewrap_resource(store, &resource, found, progress).await? {
            return Ok(());
        }
    }
    // Past states are sealed with older keys or not at all. Compaction moves those that the history retention keeps
    // to the archive.
    let end_revision = store.revision();
    store.compact(end_revision).await.map_err(unavailable)?;
    let (mut summary, mut states) = (pb::RewrapProgress::default(), 0);
    let mut next = Some(ArchiveCursor::default());
    while let Some(at) = next
        && !progress.is_closed()
    {
        let step = store.reseal_past_states(end_revision, at).await.map_err(unavailable)?;
        states += number(step.states);
        summary.past_rewritten += number(step.resealed);
        summary.past_unreadable += number(step.unreadable);
        next = step.next;
    }
    summary.past_states = Some(states);
    let _is_closed = progress.send(Ok(summary)).await;
    Ok(())
}

fn number(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// Rewraps one resource. Returns false if the caller has disconnected.
async fn rewrap_resource(
    store: &dyn Store,
    resource: &Resource,
    found: StaleSeals,
    progress: &ProgressSender,
) -> Result<bool, Status> {
    let mut message = pb::RewrapProgress {
        resource: resource.to_string(),
        objects: number(found.objects),
        stale: number(found.stale.len()),
        unreadable: number(found.unreadable),
        ..pb::RewrapProgress::default()
    };
    if progress.send(Ok(message.clone())).await.is_err() {
        return Ok(false);
    }
    for batch in found.stale.chunks(BATCH) {
        write(store, batch).await?;
        message.rewritten += number(batch.len());
        if progress.send(Ok(message.clone())).await.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes objects again without changes, if they still have these revisions.
async fn write(store: &dyn Store, batch: &[(Key, i64)]) -> Result<(), Status> {
    let mut unchanged = Vec::with_capacity(batch.len());
    for (key, revision) in batch {
        let found = store.find(key).await.map_err(|error| Status::unavailable(error.to_string()))?;
        if let Some(Ok(record)) = found.object
            && record.revision == *revision
        {
            unchanged.push(Txn::update(key.clone(), *revision, record.value.clone()));
        }
    }
    for result in store.commit(unchanged).await {
        match result {
            Ok(_) | Err(TxnError::Conflict { .. } | TxnError::NotFound { .. }) => {}
            Err(error) => return Err(Status::unavailable(error.to_string())),
        }
    }
    Ok(())
}
