//! Target of copies in a prefix of etcd. etcd cannot write a copy atomically, and assigns revisions itself. Therefore a
//! record exists until everything is written: it ends the control services that have the store open, and prevents
//! others from opening it.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::{BoxFuture, try_join_all};

use super::failure::EtcdFailure;
use super::gate::{self, Gate};
use super::keys::KeyRange;
use super::leases::Leases;
use super::object_codec::ObjectCodec;
use super::open::{self, Meta};
use super::prefix::EtcdPrefix;
use super::settings::EtcdSettings;
use super::wire::{Compare, RangeRequest, RequestOp, TxnRequest};
use crate::codec;
use crate::copy::{CopyError, CopyTarget, FinishedCopy, StoreExtent, StoredState};
use crate::read_only;
use crate::txn::Txn;

/// Maximum number of revisions that are skipped with empty writes, to pass those that clients may have seen. Each is a write.
const MAX_SKIPPED_REVISIONS: i64 = 200_000;
/// Number of concurrent empty writes.
const CONCURRENT_SKIPS: i64 = 128;
/// Number of keys that are deleted at a time.
const DELETE_BATCH: i64 = 5_000;
/// Maximum number of queries for the result of the last step if its response is lost, and their interval.
const MAX_RESULT_QUERIES: usize = 20;
const RESULT_QUERY_INTERVAL: Duration = Duration::from_millis(250);

/// Target of copies in a prefix of etcd.
pub struct EtcdTarget {
    prefix: EtcdPrefix,
    leases: Leases,
    existing: Option<StoreExtent>,
    /// State of the gate before the copy.
    initial_gate: Gate,
    /// Revision of the record of this copy, once the copy has begun.
    record_revision: Option<i64>,
    /// Highest revision that clients may have seen.
    seen_revision: i64,
    id: String,
}

/// Write to one key: bytes and a lease, or `None` to delete it.
type KeyWrite = Option<(Vec<u8>, i64)>;

impl EtcdTarget {
    /// Opens a prefix of an etcd whose revisions must exceed `revision`, which clients may have seen. Unless `force` is set, a
    /// prefix with keys is rejected. `codec` must be able to open sealed values.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn open(
        settings: &EtcdSettings,
        codec: ObjectCodec,
        revision: i64,
        force: bool,
    ) -> Result<Self, CopyError> {
        let prefix = EtcdPrefix::open(settings, codec).await?;
        let (extent, initial_gate) = (prefix.extent().await?, prefix.gate().await?);
        let is_used = prefix.is_used().await?;
        if !force && matches!(initial_gate, Gate::Restoring(_)) {
            return Err(CopyError::HalfRestored(prefix.name().to_owned()));
        }
        if !force && is_used {
            let (place, store_id) = (prefix.name().to_owned(), extent.identity.store_id);
            return Err(CopyError::NotEmpty { place, store_id, revision: extent.revision });
        }
        if revision - extent.revision > MAX_SKIPPED_REVISIONS {
            let (place, current) = (prefix.name().to_owned(), extent.revision);
            return Err(CopyError::Behind { place, current, needed: revision });
        }
        Ok(Self {
            prefix,
            leases: Leases::new(settings),
            existing: is_used.then_some(extent),
            initial_gate,
            record_revision: None,
            seen_revision: revision,
            id: uuid::Uuid::new_v4().to_string(),
        })
    }

    fn copy_error(&self, failure: EtcdFailure) -> CopyError {
        self.prefix.copy_error(failure)
    }

    /// Writes the record of the restore, and deletes the existing content. Returns the revision of the record.
    async fn begin(&mut self) -> Result<i64, CopyError> {
        if let Some(record_revision) = self.record_revision {
            return Ok(record_revision);
        }
        let key = gate::gate_key(&self.prefix.keys);
        let json = read_only::restore_record_json(&self.id);
        let stored = self.prefix.values.layout.to_stored(read_only::resource(), &json);
        let stored = stored.map_err(|reason| self.prefix.store_error(reason))?;
        let record_revision =
            self.write_at(self.initial_gate.revision(), vec![RequestOp::put(key.clone(), stored, 0)]).await?;
        self.record_revision = Some(record_revision);
        let (start, end) = self.prefix.keys.all();
        let after_key = [&*key, b"\0"].concat();
        for range in [(start, key), (after_key, end)] {
            self.clear(record_revision, range).await?;
        }
        self.skip_revisions(record_revision, self.seen_revision).await?;
        Ok(record_revision)
    }

    /// Deletes a range in parts, so that etcd serves other requests between them.
    async fn clear(&self, record_revision: i64, (key, range_end): KeyRange) -> Result<(), CopyError> {
        loop {
            let (key, range_end, limit) = (key.clone(), range_end.clone(), DELETE_BATCH);
            let request = RangeRequest { key, range_end, limit, keys_only: true, ..RangeRequest::default() };
            let found =
                self.prefix.client.range(request).await.map_err(|failure| self.copy_error(failure))?;
            let (Some(first), Some(last)) = (found.kvs.first(), found.kvs.last()) else { return Ok(()) };
            let batch_range = (first.key.clone(), [&*last.key, b"\0"].concat());
            self.write_at(record_revision, vec![RequestOp::delete_range(batch_range)]).await?;
        }
    }

    /// Writes if the record has this revision. Returns the revision of the write.
    async fn write_at(&self, record_revision: i64, success: Vec<RequestOp>) -> Result<i64, CopyError> {
        let compare = vec![Compare::is_at(gate::gate_key(&self.prefix.keys), record_revision)];
        let request = TxnRequest { compare, success, failure: Vec::new() };
        let response = self.prefix.client.txn(request).await.map_err(|failure| self.copy_error(failure))?;
        match response.succeeded {
            true => Ok(response.header.unwrap_or_default().revision),
            false => Err(CopyError::Overtaken(self.prefix.name().to_owned())),
        }
    }

    /// Advances etcd's revision to at least this one with empty writes.
    async fn skip_revisions(&self, record_revision: i64, revision: i64) -> Result<(), CopyError> {
        let key = self.skip_key();
        loop {
            let missing = revision - self.prefix.meta().await?.revision;
            if missing <= 0 {
                return Ok(());
            }
            let puts = (0..missing.min(CONCURRENT_SKIPS))
                .map(|_| self.write_at(record_revision, vec![RequestOp::put(key.clone(), Vec::new(), 0)]));
            try_join_all(puts).await?;
        }
    }

    /// Returns the key of the empty writes.
    fn skip_key(&self) -> Vec<u8> {
        [&*open::record_key(&self.prefix.root), b".restoring"].concat()
    }

    async fn write(&mut self, states: Vec<StoredState>) -> Result<(), CopyError> {
        let record_revision = self.begin().await?;
        let (mut batch, mut bytes): (HashMap<String, KeyWrite>, usize) = (HashMap::new(), 0);
        for state in states {
            let etcd_key = self.prefix.keys.object_key(&state.key);
            let write = if state.deleted { None } else { Some(self.encode(&state, &etcd_key).await?) };
            let size = etcd_key.len() + write.as_ref().map_or(0, |(value, _)| value.len());
            if batch.len() >= Txn::SHARED_OPERATIONS || bytes + size > Txn::SHARED_BYTES && !batch.is_empty()
            {
                self.write_batch(record_revision, std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            bytes += size;
            // Only the last of several states of an object is written.
            batch.insert(etcd_key, write);
        }
        self.write_batch(record_revision, batch).await
    }

    async fn write_batch(
        &self,
        record_revision: i64,
        batch: HashMap<String, KeyWrite>,
    ) -> Result<(), CopyError> {
        if batch.is_empty() {
            return Ok(());
        }
        let operation = |(etcd_key, write): (String, KeyWrite)| match write {
            Some((value, lease)) => RequestOp::put(etcd_key.into_bytes(), value, lease),
            None => RequestOp::delete(etcd_key.into_bytes()),
        };
        self.write_at(record_revision, batch.into_iter().map(operation).collect()).await.map(drop)
    }

    /// Returns the bytes and the lease of an object at its etcd key.
    async fn encode(&self, state: &StoredState, etcd_key: &str) -> Result<(Vec<u8>, i64), CopyError> {
        let (key, values) = (&state.key, &self.prefix.values);
        let unopened = |reason: String| CopyError::Unopened { key: key.clone(), reason };
        let stored = codec::decode(&state.value).map_err(unopened)?;
        let opened = values.seal.open(key, stored).await.map_err(|error| unopened(error.to_string()))?;
        let stored =
            values.encode_json(key, etcd_key, &opened.json).map_err(|error| unopened(error.to_string()))?;
        let lease = match values.layout.time_to_live(key.resource()) {
            Some(time) => self.leases.lease(&self.prefix.client, time).await,
            None => Ok(0),
        };
        Ok((stored, lease.map_err(|failure| self.copy_error(failure))?))
    }

    async fn end(mut self: Box<Self>, new_extent: StoreExtent) -> Result<FinishedCopy, CopyError> {
        let record_revision = self.begin().await?;
        // Earlier versions are not history, and their revisions precede the new ones.
        self.skip_revisions(record_revision, new_extent.revision + 1).await?;
        let Meta { cluster_id, revision: oldest, .. } = self.prefix.meta().await?;
        match self.prefix.client.compact(oldest).await {
            Err(failure) if !failure.is_compacted() => return Err(self.copy_error(failure)),
            _ => {}
        }
        let (identity, root) = (new_extent.identity, &self.prefix.root);
        let mark = open::put_identity(root, identity.clone(), cluster_id);
        let mark = mark.map_err(|failure| self.copy_error(failure))?;
        let record = gate::gate_key(&self.prefix.keys);
        let success = vec![mark, RequestOp::delete(record.clone()), RequestOp::delete(self.skip_key())];
        let request = TxnRequest {
            compare: vec![Compare::is_at(record, record_revision)],
            success,
            failure: Vec::new(),
        };
        let revision = match self.prefix.client.txn(request).await {
            Ok(response) if response.succeeded => response.header.unwrap_or_default().revision,
            Ok(_) => return Err(CopyError::Overtaken(self.prefix.name().to_owned())),
            Err(failure) => self.resolve_in_doubt(record_revision, failure).await?,
        };
        Ok(FinishedCopy { extent: StoreExtent { identity, revision, oldest }, saved_to: None })
    }

    /// Determines if the last step was executed although its response was lost: the record is then gone. Returns its revision.
    async fn resolve_in_doubt(&self, record_revision: i64, failure: EtcdFailure) -> Result<i64, CopyError> {
        for _ in 0..MAX_RESULT_QUERIES {
            tokio::time::sleep(RESULT_QUERY_INTERVAL).await;
            match (self.prefix.gate().await, self.prefix.meta().await) {
                (Ok(Gate::Open), Ok(meta)) => return Ok(meta.revision),
                // The step may still be executed, unless the record has changed.
                (Ok(gate), Ok(_)) if gate != Gate::Restoring(record_revision) => {
                    return Err(CopyError::Overtaken(self.prefix.name().to_owned()));
                }
                _ => {}
            }
        }
        Err(CopyError::InDoubt { place: self.prefix.name().to_owned(), reason: failure.reason() })
    }
}

impl CopyTarget for EtcdTarget {
    fn existing(&self) -> Option<&StoreExtent> {
        self.existing.as_ref()
    }

    fn assigns_revisions(&self) -> bool {
        true
    }

    fn add(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(self.write(states))
    }

    fn follow(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(async {
            let last = states.iter().map(|state| state.revision).max().unwrap_or(0);
            self.write(states).await?;
            let record_revision = self.begin().await?;
            // Revisions that are skipped now need not be skipped while writes are stopped.
            self.skip_revisions(record_revision, last).await
        })
    }

    fn finish(
        self: Box<Self>,
        new_extent: StoreExtent,
    ) -> BoxFuture<'static, Result<FinishedCopy, CopyError>> {
        Box::pin(self.end(new_extent))
    }
}
