//! ResourceQuota: the resources that a write needs must be available, and are counted in the same transaction.
//!
//! Upstream rules: apiserver/pkg/admission/plugin/resourcequota. The controller that maintains the status of quotas
//! (`resourcequota-controller`) recalculates the usage; a quota without a status limits nothing. Upstream updates the status
//! before the write, and leaves the usage counted if the write fails. Here the write and the count succeed or fail together.

mod configuration;
mod demand;
mod handles;
mod limited;
mod shared;
mod surroundings;
mod usage;

use std::sync::Arc;

use portico_machinery::GroupResource;
use portico_quota::{Surroundings, evaluator};
use portico_store::{Change, Key, Operation, Record, Txn};

use portico_registry::Result;

use portico_registry::Objects;
use portico_registry::attempts::{MAX_WRITE_ATTEMPTS, too_busy};
use portico_registry::{Attributes, Charged, Write};

use crate::listing::Listing;
pub(crate) use configuration::QuotaConfiguration;
use demand::QuotaDemand;
use handles::handles;
pub use limited::{LimitedResource, MatchScope};
pub(crate) use shared::SharedTransactions;
use shared::{Counting, Encoder, Joined};

fn quotas() -> GroupResource {
    GroupResource::new("", "resourcequotas")
}

/// Quota admission of one write.
pub(crate) struct Quotas<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) attributes: Attributes<'a>,
    pub(crate) write: Write<'a>,
    pub(crate) shared: &'a SharedTransactions,
    pub(crate) limited: &'a [LimitedResource],
}

impl Quotas<'_> {
    /// Commits a valid write, and the checks of objects that it depends on, together with the updates of the quotas that count
    /// it. Concurrent writes to one namespace share an update of its quotas. Returns `None` without committing if no quota
    /// counts the write.
    ///
    /// # Errors
    /// 403 with upstream's message if the write exceeds a quota. Errors of the commit are in the inner result.
    pub(crate) async fn commit(&self, txn: &Txn, checks: &[Operation]) -> Result<Charged> {
        let operations = &txn.operations;
        let surroundings = match self.surroundings().await? {
            Some(surroundings) if !is_too_large(txn) => surroundings,
            _ => return Ok(None),
        };
        let asked = self.asked(&surroundings);
        let mut turn = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            if self.stored().await?.complete(&self.attributes)?.is_empty() {
                // No quota counts the write, but a limited resource may require one.
                return asked.taken(&[]).map(|_| None);
            }
            let turn = turn.get_or_insert_with(|| self.shared.of(self.write.new.namespace()));
            let counting =
                Counting { store: &self.objects.store, operations, checks, encoder: self.quota_encoder()? };
            match turn.join(&counting, |quotas| asked.taken(quotas))? {
                Joined::Uncounted => return Ok(None),
                Joined::Lost(error) => return Ok(Some(Err(error))),
                Joined::Later(waiting) => drop(waiting.await),
                Joined::Member(member) => {
                    let all = operations.iter().chain(checks);
                    let keys: Vec<Key> = all.map(|operation| operation.key.clone()).collect();
                    if let Some(ended) = member.outcome(&keys).await {
                        return ended.map(Some);
                    }
                }
            }
        }
        Err(too_busy(&self.attributes.served.resource, self.write.new.name()))
    }

    /// Checks whether a valid write that is not stored (dry run) fits in the quotas.
    ///
    /// # Errors
    /// 403 with upstream's message if it does not.
    pub(crate) async fn check(&self) -> Result<()> {
        let Some(surroundings) = self.surroundings().await? else { return Ok(()) };
        let quotas = self.stored().await?.decoded().complete(&self.attributes)?;
        self.asked(&surroundings).taken(&quotas.iter().collect::<Vec<_>>()).map(drop)
    }

    fn asked<'s>(&'s self, surroundings: &'s Surroundings) -> QuotaDemand<'s> {
        let (resource, now) = (&self.attributes.served.resource, self.objects.moment().now);
        QuotaDemand::new(resource, surroundings, self.limited, &self.write, now)
    }

    /// Returns the objects that are counted with the written object; `None` if writes like this one are never counted, or if no
    /// quota and no limited resource exists.
    async fn surroundings(&self) -> Result<Option<Surroundings>> {
        let stored = self.stored().await?;
        if self.limited.is_empty() && stored.is_empty() {
            return Ok(None);
        }
        let (resource, none) = (&self.attributes.served.resource, Surroundings::default());
        if !handles(resource, &*evaluator(resource, &none), &self.write) {
            return Ok(None);
        }
        stored.complete(&self.attributes)?;
        surroundings::of(self.objects, &self.attributes, self.write.new).await.map(Some)
    }

    fn quota_encoder(&self) -> Result<Encoder> {
        let objects = self.objects;
        let (kind, catalogue) = (objects.served(&quotas())?, Arc::clone(&objects.builtin));
        Ok(Encoder { kind, catalogue, clock: Arc::clone(&objects.clock) })
    }

    /// Returns the quotas of the namespace of the write.
    async fn stored(&self) -> Result<Listing<Arc<Record>>> {
        // If the registry does not serve quotas, no namespace has any.
        let Ok(kind) = self.objects.served(&quotas()) else { return Ok(Listing::default()) };
        self.shared.keeps_quotas.get_or_init(|| self.objects.store.keep(&kind.storage));
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
