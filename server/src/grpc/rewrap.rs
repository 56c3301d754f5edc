//! `Admin.Rewrap`: what is not sealed with the first provider of its resource is written anew, as it is.
//!
//! It looks at what is stored, so a call that was cut off is gone on with by the next one. Objects get new resource versions, as
//! from a write that changes nothing; whoever writes one meanwhile wins, and has sealed it by that. Past states keep their versions.

use std::sync::Arc;

use portico_machinery::Status;
use portico_proto::admin as pb;
use portico_store::{ArchiveAt, Key, Resource, SealedOtherwise, Store, Txn, TxnError};
use tokio::sync::mpsc;

use super::{RpcResult, refused};

/// Objects written with one sync.
const BATCH: usize = 100;
/// Messages that may wait for the caller.
pub(super) const QUEUE: usize = 16;

type Progress = mpsc::Sender<RpcResult<pb::RewrapProgress>>;

/// Where nothing is sealed all history would be forgotten for nothing. Rules that have values stored as they are, are rules.
pub(super) fn refuse_without_rules(store: &dyn Store) -> RpcResult<()> {
    if store.has_seal_rules() {
        return Ok(());
    }
    let text =
        "encryption at rest is not configured: the control service has no --encryption-provider-config";
    Err(tonic::Status::failed_precondition(text))
}

/// Rewrites all resources; ends when nobody listens any more.
pub(super) async fn run(store: Arc<dyn Store>, progress: Progress) {
    if let Err(status) = rewrap(&*store, &progress).await {
        // Nobody is left to report to.
        let _gone = progress.send(Err(refused(status))).await;
    }
}

async fn rewrap(store: &dyn Store, progress: &Progress) -> Result<(), Status> {
    let unavailable = |error: portico_store::StoreError| Status::unavailable(error.to_string());
    for resource in store.sealed_resources() {
        let found = store.sealed_otherwise(&resource).await.map_err(unavailable)?;
        if !of_resource(store, &resource, found, progress).await? {
            return Ok(());
        }
    }
    // Past states are sealed as they were, or not at all. Those that a rule of histories keeps go to the archive so.
    let until = store.revision();
    store.compact(until).await.map_err(unavailable)?;
    let (mut done, mut states) = (pb::RewrapProgress::default(), 0);
    let mut behind = Some(ArchiveAt::default());
    while let Some(at) = behind
        && !progress.is_closed()
    {
        let step = store.reseal_past(until, at).await.map_err(unavailable)?;
        states += number(step.states);
        done.past_rewritten += number(step.resealed);
        done.past_unreadable += number(step.unreadable);
        behind = step.next;
    }
    done.past_states = Some(states);
    let _gone = progress.send(Ok(done)).await;
    Ok(())
}

fn number(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// Whether somebody still listens.
async fn of_resource(
    store: &dyn Store,
    resource: &Resource,
    found: SealedOtherwise,
    progress: &Progress,
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

/// Writes these objects as they are, where they are still at these revisions.
async fn write(store: &dyn Store, batch: &[(Key, i64)]) -> Result<(), Status> {
    let mut same = Vec::with_capacity(batch.len());
    for (key, revision) in batch {
        let found = store.find(key).await.map_err(|error| Status::unavailable(error.to_string()))?;
        if let Some(Ok(record)) = found.object
            && record.revision == *revision
        {
            same.push(Txn::update(key.clone(), *revision, record.value.clone()));
        }
    }
    for written in store.commit(same).await {
        match written {
            Ok(_) | Err(TxnError::Conflict { .. } | TxnError::NotFound { .. }) => {}
            Err(error) => return Err(Status::unavailable(error.to_string())),
        }
    }
    Ok(())
}
