//! ResourceQuota: what a write needs must be left, and is counted in the same transaction.
//!
//! Upstream rules: apiserver/pkg/admission/plugin/resourcequota. What is used up is counted back by whoever keeps quotas'
//! statuses (kube-controller-manager); a quota without a status limits nothing. Where upstream updates the status before
//! the write, and leaves it counted when that fails, here both happen or neither.

mod claims;
mod configuration;
mod counts;
mod devices;
mod evaluator;
mod evaluators;
mod limited;
mod pods;
mod requirement;
mod scopes;
mod services;
mod shared;
mod usage;

use std::sync::Arc;

use portico_machinery::{GroupResource, Object, Quantity, Status};
use portico_store::{Change, Key, Operation, Record, Txn};

pub(crate) use configuration::QuotaConfiguration;
use evaluator::Evaluator;
use evaluators::evaluator;
pub use limited::{LimitedResource, MatchScope};
use portico_registry::Result;

use portico_registry::attempts::{MAX_WRITE_ATTEMPTS, too_busy};
use portico_registry::stored;
use portico_registry::{Attributes, Charged, Write};
use portico_registry::{Objects, Part};
use portico_validation::pod_spec::totals::{Amounts, add, amounts};
pub(crate) use shared::SharedTransactions;
use shared::{Counting, Encoder, Joined};

fn quotas() -> GroupResource {
    GroupResource::new("", "resourcequotas")
}

/// The quotas that count one write.
pub(crate) struct Quotas<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) attributes: Attributes<'a>,
    pub(crate) write: Write<'a>,
    pub(crate) shared: &'a SharedTransactions,
}

impl Quotas<'_> {
    /// Commits a valid write, and the checks of what it relies on, together with what counts it. Writes of one namespace
    /// that arrive together share an update of its quotas. Nothing, and nothing was done, for a write that no quota counts.
    ///
    /// # Errors
    /// 403 in upstream's words when it does not fit; what else goes wrong is the inner result's.
    pub(crate) async fn commit(&self, txn: &Txn, checks: &[Operation]) -> Result<Charged> {
        let operations = &txn.operations;
        let mut turn = None;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            if self.counting().await?.is_empty() || is_too_large(txn) {
                return Ok(None);
            }
            let turn = turn.get_or_insert_with(|| self.shared.of(self.write.new.namespace()));
            let counting =
                Counting { store: &self.objects.store, operations, checks, encoder: self.quota_encoder()? };
            let taken = |quotas: &[&Object]| self.taken(quotas);
            match turn.join(&counting, taken)? {
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

    /// Whether a valid write that is not to be stored would fit.
    ///
    /// # Errors
    /// 403 in upstream's words when it does not.
    pub(crate) async fn check(&self) -> Result<()> {
        let quotas = self.counting().await?;
        let quotas: Vec<Object> = quotas.iter().map(|record| stored::decode(record)).collect();
        self.taken(&quotas.iter().collect::<Vec<_>>()).map(drop)
    }

    /// What a write takes of each of these quotas; nothing of one that is not about it.
    fn taken(&self, quotas: &[&Object]) -> Result<Vec<Amounts>> {
        let (served, write) = (self.attributes.served, &self.write);
        let evaluator = evaluator(&served.resource);
        let asked = Asked { evaluator: &*evaluator, write, now: self.objects.moment().now };
        let refuse = |why: String| Box::new(Status::forbidden(&served.resource, write.new.name(), &why));
        let concerned: Vec<bool> =
            quotas.iter().map(|quota| asked.concerns(quota)).collect::<Result<_, _>>().map_err(refuse)?;
        let takes = |(quota, concerned): (&&Object, bool)| match concerned {
            true => asked.takes(quota).map_err(refuse),
            false => Ok(Amounts::default()),
        };
        quotas.iter().zip(concerned).map(takes).collect()
    }

    /// The quotas of the write's namespace, when writes of its kind are counted at all.
    async fn counting(&self) -> Result<Vec<Arc<Record>>> {
        let quotas = self.of_namespace(self.write.new.namespace()).await?;
        let counted = !quotas.is_empty() && evaluator(&self.attributes.served.resource).handles(&self.write);
        Ok(if counted { quotas } else { Vec::new() })
    }

    fn quota_encoder(&self) -> Result<Encoder> {
        let objects = self.objects;
        let (kind, catalogue) = (objects.served(&quotas())?, Arc::clone(&objects.builtin));
        Ok(Encoder { kind, catalogue, clock: Arc::clone(&objects.clock) })
    }

    async fn of_namespace(&self, namespace: &str) -> Result<Vec<Arc<Record>>> {
        // A registry without quotas has none in any namespace.
        let Ok(kind) = self.objects.served(&quotas()) else { return Ok(Vec::new()) };
        let snapshot = self.objects.snapshot(&kind).await?;
        Ok(snapshot.range(Some(namespace), None).cloned().collect())
    }
}

/// Whether the store is going to refuse an object of the write, whatever else is in its transaction.
fn is_too_large(txn: &Txn) -> bool {
    txn.operations.iter().any(|operation| match &operation.change {
        Change::Put(value) => value.json().len() > Txn::MAX_VALUE_BYTES,
        Change::Delete(_) | Change::Check => false,
    })
}

/// A write, asked of one quota after another.
struct Asked<'a> {
    evaluator: &'a dyn Evaluator,
    write: &'a Write<'a>,
    now: jiff::Timestamp,
}

impl Asked<'_> {
    /// Whether a quota is about the write, which then has to say what is limited, as has the quota what is used.
    fn concerns(&self, quota: &Object) -> Result<bool, String> {
        let (name, hard) = (quota.name(), quota.at(&["status", "hard"]));
        let limited: Vec<&str> =
            hard.entries().map(|(name, _)| name).filter(|name| self.evaluator.counts(name)).collect();
        if limited.is_empty() || !scopes::matches(quota, self.write.new, self.evaluator) {
            return Ok(false);
        }
        self.evaluator
            .constraints(&limited, self.write.new)
            .map_err(|why| format!("failed quota: {name}: {why}"))?;
        let used = quota.at(&["status", "used"]);
        if limited.iter().all(|resource| used.key(resource).is_present()) {
            return Ok(true);
        }
        let mut limited = limited;
        limited.sort_unstable();
        Err(format!("status unknown for quota: {name}, resources: {}", limited.join(",")))
    }

    /// What the write takes from a quota that is about it.
    fn takes(&self, quota: &Object) -> Result<Amounts, String> {
        let [hard, used] = ["hard", "used"].map(|list| amounts(&quota.at(&["status", list])));
        let mut taken = self.delta(quota)?;
        taken.retain(|resource, amount| !amount.is_zero() && hard.contains_key(resource));
        self.fits(quota.name(), &taken, &used, &hard)?;
        Ok(taken)
    }

    /// What the write needs more than what is there needed of this quota.
    fn delta(&self, quota: &Object) -> Result<Amounts, String> {
        let mut usage = self.evaluator.usage(self.write.new, self.now);
        let negative: Vec<&str> =
            usage.iter().filter(|(_, amount)| amount.is_negative()).map(|(name, _)| name.as_str()).collect();
        if !negative.is_empty() {
            return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
        }
        if let Some(old) = self.write.old.filter(|old| scopes::matches(quota, old, self.evaluator)) {
            let before = self.evaluator.usage(old, self.now);
            for (name, amount) in &mut usage {
                let less = amount.minus(before.get(name).unwrap_or(&Quantity::ZERO));
                *amount = less.max(Quantity::ZERO);
            }
        }
        Ok(usage)
    }

    fn fits(&self, name: &str, taken: &Amounts, used: &Amounts, hard: &Amounts) -> Result<(), String> {
        // A status tells what is so already.
        if self.write.part == Part::Subresource("status") {
            return Ok(());
        }
        let mut after = used.clone();
        add(&mut after, taken);
        let exceeded: Vec<&String> =
            taken.keys().filter(|resource| after[*resource] > hard[*resource]).collect();
        if exceeded.is_empty() {
            return Ok(());
        }
        let printed = |of: &Amounts| {
            let each = exceeded.iter().filter_map(|resource| Some((resource, of.get(*resource)?)));
            each.map(|(resource, amount)| format!("{resource}={amount}")).collect::<Vec<_>>().join(",")
        };
        Err(format!(
            "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
            printed(taken),
            printed(used),
            printed(hard)
        ))
    }
}
