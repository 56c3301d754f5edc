//! ResourceQuota: the resources that a write needs must be available, and are counted in the same transaction.
//!
//! Upstream rules: apiserver/pkg/admission/plugin/resourcequota. The controller that maintains the status of quotas
//! (`resourcequota-controller`) recalculates the usage; a quota without a status limits nothing. Upstream updates the status
//! before the write, and leaves the usage counted if the write fails. Here the write and the count succeed or fail together.

mod configuration;
mod demand;
mod device_context;
mod handles;
mod limited_resources;
mod shared;
mod usage;

use std::sync::Arc;

use portico_machinery::GroupResource;
use portico_quota::{DeviceContext, evaluator};
use portico_store::{Change, Key, Operation, Record, Txn};

use portico_registry::Result;

use portico_registry::Objects;
use portico_registry::attempts::{MAX_WRITE_ATTEMPTS, too_busy};
use portico_registry::{Attributes, QuotaCommit, Write};

use crate::listing::Listing;
pub(crate) use configuration::QuotaConfiguration;
use demand::QuotaDemand;
use handles::handles;
pub use limited_resources::{LimitedResource, MatchScope};
pub(crate) use shared::SharedTransactions;
use shared::{CountedWrite, Encoder, JoinResult};

fn quotas() -> GroupResource {
    GroupResource::new("", "resourcequotas")
}

/// Quota admission of one write.
pub(crate) struct QuotaAdmission<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) attributes: Attributes<'a>,
    pub(crate) write: Write<'a>,
    pub(crate) transactions: &'a SharedTransactions,
    pub(crate) limited_resources: &'a [LimitedResource],
}

impl QuotaAdmission<'_> {
    /// Commits a valid write, and the checks of objects that it depends on, together with the updates of the quotas that count
    /// it. Concurrent writes to one namespace share an update of its quotas. Returns `None` without committing if no quota
    /// counts the write.
    ///
    /// # Errors
    /// 403 with upstream's message if the write exceeds a quota. Errors of the commit are in the inner result.
    pub(crate) async fn commit(&self, txn: &Txn, checks: &[Operation]) -> Result<QuotaCommit> {
        let operations = &txn.operations;
        let device_context = match self.read_device_context().await? {
            Some(device_context) if !is_too_large(txn) => device_context,
            _ => return Ok(None),
        };
        let demand = self.demand(&device_context);
        let mut guard = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            if self.stored_quotas().await?.complete(&self.attributes)?.is_empty() {
                // No quota counts the write, but a limited resource may require one.
                return demand.amounts_taken(&[]).map(|_| None);
            }
            let guard = guard.get_or_insert_with(|| self.transactions.enter(self.write.new.namespace()));
            let counting = CountedWrite {
                store: &self.objects.store,
                operations,
                checks,
                encoder: self.quota_encoder()?,
            };
            match guard.join(&counting, |quotas| demand.amounts_taken(quotas))? {
                JoinResult::Uncounted => return Ok(None),
                JoinResult::Rejected(error) => return Ok(Some(Err(error))),
                JoinResult::Wait(waiting) => drop(waiting.await),
                JoinResult::Member(member) => {
                    let all = operations.iter().chain(checks);
                    let keys: Vec<Key> = all.map(|operation| operation.key.clone()).collect();
                    if let Some(outcome) = member.outcome(&keys).await {
                        return outcome.map(Some);
                    }
                }
            }
        }
        Err(too_busy(&self.attributes.served_resource.resource, self.write.new.name()))
    }

    /// Checks whether a valid write that is not stored (dry run) fits in the quotas.
    ///
    /// # Errors
    /// 403 with upstream's message if it does not.
    pub(crate) async fn check(&self) -> Result<()> {
        let Some(device_context) = self.read_device_context().await? else { return Ok(()) };
        let quotas = self.stored_quotas().await?.decode().complete(&self.attributes)?;
        self.demand(&device_context).amounts_taken(&quotas.iter().collect::<Vec<_>>()).map(drop)
    }

    fn demand<'s>(&'s self, device_context: &'s DeviceContext) -> QuotaDemand<'s> {
        let (resource, now) = (&self.attributes.served_resource.resource, self.objects.request_time().now);
        QuotaDemand::new(resource, device_context, self.limited_resources, &self.write, now)
    }

    /// Returns the objects that are counted with the written object; `None` if writes like this one are never counted, or if no
    /// quota and no limited resource exists.
    async fn read_device_context(&self) -> Result<Option<DeviceContext>> {
        let stored = self.stored_quotas().await?;
        if self.limited_resources.is_empty() && stored.is_empty() {
            return Ok(None);
        }
        let (resource, none) = (&self.attributes.served_resource.resource, DeviceContext::default());
        if !handles(resource, &*evaluator(resource, &none), &self.write) {
            return Ok(None);
        }
        stored.complete(&self.attributes)?;
        device_context::read(self.objects, &self.attributes, self.write.new).await.map(Some)
    }

    fn quota_encoder(&self) -> Result<Encoder> {
        let objects = self.objects;
        let (kind, catalogue) = (objects.served_resource(&quotas())?, Arc::clone(&objects.builtin));
        Ok(Encoder { kind, catalogue, clock: Arc::clone(&objects.clock) })
    }

    /// Returns the quotas of the namespace of the write.
    async fn stored_quotas(&self) -> Result<Listing<Arc<Record>>> {
        // If the registry does not serve quotas, no namespace has any.
        let Ok(kind) = self.objects.served_resource(&quotas()) else { return Ok(Listing::default()) };
        self.transactions.quotas_pinned.get_or_init(|| self.objects.store.pin(&kind.storage));
        let snapshot = self.objects.snapshot(&kind).await?;
        Ok(Listing::of_snapshot(&*self.objects.store, &snapshot, Some(self.write.new.namespace())))
    }
}

/// True if the store will refuse an object of the write regardless of the rest of the transaction.
fn is_too_large(txn: &Txn) -> bool {
    txn.operations.iter().any(|operation| match &operation.change {
        Change::Put(value) => value.json().len() > Txn::MAX_VALUE_BYTES,
        Change::Delete(_) | Change::Check => false,
    })
}
