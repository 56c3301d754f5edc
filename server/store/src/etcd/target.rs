//! Target of copies in a prefix of etcd. etcd cannot write a copy atomically, and assigns revisions itself. Therefore a
//! record exists until everything is written: it ends the control services that have the store open, and prevents
//! others from opening it.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::{BoxFuture, try_join_all};

use super::failure::Failure;
use super::gate::{self, Gate};
use super::keys::KeyRange;
use super::known::Known;
use super::leases::Leases;
use super::open::{self, Meta};
use super::place::Place;
use super::settings::EtcdSettings;
use super::wire::{Compare, RangeRequest, RequestOp, TxnRequest};
use crate::codec;
use crate::copy::{CopyError, CopyTarget, Extent, Finished, StoredState};
use crate::read_only;
use crate::txn::Txn;

/// Maximum number of revisions that are skipped with empty writes, to pass those that clients may have seen. Each is a write.
const MAX_PASSED: i64 = 200_000;
/// Number of concurrent empty writes.
const PASSING: i64 = 128;
/// Number of keys that are deleted at a time.
const CLEARED: i64 = 5_000;
/// Maximum number of queries for the result of the last step if its response is lost, and their interval.
const LOOKS: usize = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Target of copies in a prefix of etcd.
pub struct EtcdTarget {
    place: Place,
    leases: Leases,
    there: Option<Extent>,
    /// State of the gate before the copy.
    found: Gate,
    /// Revision of the record of this copy, once the copy has begun.
    mine: Option<i64>,
    /// Highest revision that clients may have seen.
    known: i64,
    id: String,
}

/// Write to one key: bytes and a lease, or `None` to delete it.
type Write = Option<(Vec<u8>, i64)>;

impl EtcdTarget {
    /// Opens a prefix of an etcd whose revisions must exceed `revision`, which clients may have seen. Unless `force` is set, a
    /// prefix with keys is rejected. `codec` must be able to open sealed values.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn open(
        settings: &EtcdSettings,
        known: Known,
        revision: i64,
        force: bool,
    ) -> Result<Self, CopyError> {
        let place = Place::open(settings, known).await?;
        let (extent, found) = (place.extent().await?, place.gate().await?);
        let is_used = place.is_used().await?;
        if !force && matches!(found, Gate::Restoring(_)) {
            return Err(CopyError::HalfRestored(place.name().to_owned()));
        }
        if !force && is_used {
            let (place, store_id) = (place.name().to_owned(), extent.identity.store_id);
            return Err(CopyError::NotEmpty { place, store_id, revision: extent.revision });
        }
        if revision - extent.revision > MAX_PASSED {
            let (place, stands) = (place.name().to_owned(), extent.revision);
            return Err(CopyError::Behind { place, stands, needed: revision });
        }
        Ok(Self {
            place,
            leases: Leases::new(settings),
            there: is_used.then_some(extent),
            found,
            mine: None,
            known: revision,
            id: uuid::Uuid::new_v4().to_string(),
        })
    }

    fn failed(&self, failure: Failure) -> CopyError {
        self.place.failed(failure)
    }

    /// Writes the record of the restore, and deletes the existing content. Returns the revision of the record.
    async fn begin(&mut self) -> Result<i64, CopyError> {
        if let Some(mine) = self.mine {
            return Ok(mine);
        }
        let key = gate::place(&self.place.keys);
        let json = read_only::json_of_restore(&self.id);
        let stored = self.place.values.layout.to_stored(read_only::resource(), &json);
        let stored = stored.map_err(|why| self.place.store(why))?;
        let mine = self.write_at(self.found.revision(), vec![RequestOp::put(key.clone(), stored, 0)]).await?;
        self.mine = Some(mine);
        let (first, end) = self.place.keys.all();
        let behind = [&*key, b"\0"].concat();
        for range in [(first, key), (behind, end)] {
            self.clear(mine, range).await?;
        }
        self.pass(mine, self.known).await?;
        Ok(mine)
    }

    /// Deletes a range in parts, so that etcd serves other requests between them.
    async fn clear(&self, mine: i64, (key, range_end): KeyRange) -> Result<(), CopyError> {
        loop {
            let (key, range_end, limit) = (key.clone(), range_end.clone(), CLEARED);
            let request = RangeRequest { key, range_end, limit, keys_only: true, ..RangeRequest::default() };
            let found = self.place.client.range(request).await.map_err(|failure| self.failed(failure))?;
            let (Some(first), Some(last)) = (found.kvs.first(), found.kvs.last()) else { return Ok(()) };
            let part = (first.key.clone(), [&*last.key, b"\0"].concat());
            self.write_at(mine, vec![RequestOp::delete_range(part)]).await?;
        }
    }

    /// Writes if the record has this revision. Returns the revision of the write.
    async fn write_at(&self, record: i64, success: Vec<RequestOp>) -> Result<i64, CopyError> {
        let compare = vec![Compare::is_at(gate::place(&self.place.keys), record)];
        let request = TxnRequest { compare, success, failure: Vec::new() };
        let answer = self.place.client.txn(request).await.map_err(|failure| self.failed(failure))?;
        match answer.succeeded {
            true => Ok(answer.header.unwrap_or_default().revision),
            false => Err(CopyError::Overtaken(self.place.name().to_owned())),
        }
    }

    /// Advances etcd's revision to at least this one with empty writes.
    async fn pass(&self, mine: i64, revision: i64) -> Result<(), CopyError> {
        let key = self.passing();
        loop {
            let missing = revision - self.place.meta().await?.revision;
            if missing <= 0 {
                return Ok(());
            }
            let puts = (0..missing.min(PASSING))
                .map(|_| self.write_at(mine, vec![RequestOp::put(key.clone(), Vec::new(), 0)]));
            try_join_all(puts).await?;
        }
    }

    /// Returns the key of the empty writes.
    fn passing(&self) -> Vec<u8> {
        [&*open::mark_key(&self.place.root), b".restoring"].concat()
    }

    async fn write(&mut self, states: Vec<StoredState>) -> Result<(), CopyError> {
        let mine = self.begin().await?;
        let (mut batch, mut bytes): (HashMap<String, Write>, usize) = (HashMap::new(), 0);
        for state in states {
            let place = self.place.keys.of(&state.key);
            let write = if state.deleted { None } else { Some(self.encode(&state, &place).await?) };
            let size = place.len() + write.as_ref().map_or(0, |(value, _)| value.len());
            if batch.len() >= Txn::SHARED_OPERATIONS || bytes + size > Txn::SHARED_BYTES && !batch.is_empty()
            {
                self.write_batch(mine, std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            bytes += size;
            // Only the last of several states of an object is written.
            batch.insert(place, write);
        }
        self.write_batch(mine, batch).await
    }

    async fn write_batch(&self, mine: i64, batch: HashMap<String, Write>) -> Result<(), CopyError> {
        if batch.is_empty() {
            return Ok(());
        }
        let operation = |(place, write): (String, Write)| match write {
            Some((value, lease)) => RequestOp::put(place.into_bytes(), value, lease),
            None => RequestOp::delete(place.into_bytes()),
        };
        self.write_at(mine, batch.into_iter().map(operation).collect()).await.map(drop)
    }

    /// Returns the bytes and the lease of an object at its etcd key.
    async fn encode(&self, state: &StoredState, place: &str) -> Result<(Vec<u8>, i64), CopyError> {
        let (key, values) = (&state.key, &self.place.values);
        let unopened = |reason: String| CopyError::Unopened { key: key.clone(), reason };
        let stored = codec::decode(&state.value).map_err(unopened)?;
        let opened = values.seal.open(key, stored).await.map_err(|error| unopened(error.to_string()))?;
        let stored =
            values.to_stored(key, place, &opened.json).map_err(|error| unopened(error.to_string()))?;
        let lease = match values.layout.time_to_live(key.resource()) {
            Some(time) => self.leases.lease(&self.place.client, time).await,
            None => Ok(0),
        };
        Ok((stored, lease.map_err(|failure| self.failed(failure))?))
    }

    async fn end(mut self: Box<Self>, becomes: Extent) -> Result<Finished, CopyError> {
        let mine = self.begin().await?;
        // Earlier versions are not history, and their revisions precede the new ones.
        self.pass(mine, becomes.revision + 1).await?;
        let Meta { cluster_id, revision: oldest, .. } = self.place.meta().await?;
        match self.place.client.compact(oldest).await {
            Err(failure) if !failure.is_compacted() => return Err(self.failed(failure)),
            _ => {}
        }
        let (identity, root) = (becomes.identity, &self.place.root);
        let mark = open::put_identity(root, identity.clone(), cluster_id);
        let mark = mark.map_err(|failure| self.failed(failure))?;
        let record = gate::place(&self.place.keys);
        let success = vec![mark, RequestOp::delete(record.clone()), RequestOp::delete(self.passing())];
        let request =
            TxnRequest { compare: vec![Compare::is_at(record, mine)], success, failure: Vec::new() };
        let revision = match self.place.client.txn(request).await {
            Ok(answer) if answer.succeeded => answer.header.unwrap_or_default().revision,
            Ok(_) => return Err(CopyError::Overtaken(self.place.name().to_owned())),
            Err(failure) => self.settle(mine, failure).await?,
        };
        Ok(Finished { extent: Extent { identity, revision, oldest }, kept: None })
    }

    /// Determines if the last step was executed although its response was lost: the record is then gone. Returns its revision.
    async fn settle(&self, mine: i64, failure: Failure) -> Result<i64, CopyError> {
        for _ in 0..LOOKS {
            tokio::time::sleep(LOOK_AGAIN).await;
            match (self.place.gate().await, self.place.meta().await) {
                (Ok(Gate::Open), Ok(meta)) => return Ok(meta.revision),
                // The step may still be executed, unless the record has changed.
                (Ok(gate), Ok(_)) if gate != Gate::Restoring(mine) => {
                    return Err(CopyError::Overtaken(self.place.name().to_owned()));
                }
                _ => {}
            }
        }
        Err(CopyError::InDoubt { place: self.place.name().to_owned(), reason: failure.reason() })
    }
}

impl CopyTarget for EtcdTarget {
    fn replaces(&self) -> Option<&Extent> {
        self.there.as_ref()
    }

    fn numbers_by_itself(&self) -> bool {
        true
    }

    fn add(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(self.write(states))
    }

    fn follow(&mut self, states: Vec<StoredState>) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(async {
            let last = states.iter().map(|state| state.revision).max().unwrap_or(0);
            self.write(states).await?;
            let mine = self.begin().await?;
            // Revisions that are skipped now need not be skipped while writes are stopped.
            self.pass(mine, last).await
        })
    }

    fn finish(self: Box<Self>, becomes: Extent) -> BoxFuture<'static, Result<Finished, CopyError>> {
        Box::pin(self.end(becomes))
    }
}
