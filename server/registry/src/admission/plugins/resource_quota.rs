//! ResourceQuota: what a write needs must be left, and is counted in the same transaction.
//!
//! Upstream rules: apiserver/pkg/admission/plugin/resourcequota. What is used up is counted back by whoever keeps quotas'
//! statuses (kube-controller-manager); a quota without a status limits nothing. Where upstream updates the status before
//! the write, and leaves it counted when that fails, here both happen or neither.

mod claims;
mod counts;
mod devices;
mod evaluator;
mod pods;
mod scopes;
mod services;

use std::sync::Arc;

use portico_machinery::{GroupResource, Object, Quantity, Status};
use portico_store::{Change as Put, Expect, Key, Operation, Record, Txn, TxnError, Value};

use crate::Result;
use crate::managed_fields;
use crate::pod_spec::totals::{Amounts, add, amounts};
use crate::registry::{Inner, Part};
use crate::served::Served;
use crate::strategies::Write;
use crate::{draft, stored};
use evaluator::{Evaluator, evaluator};

/// The plugin's name.
const NAME: &str = "ResourceQuota";
/// Who counts, among the managers of a quota's fields.
const MANAGER: &str = "kube-apiserver";

fn quotas() -> GroupResource {
    GroupResource::new("", "resourcequotas")
}

/// Whether a transaction failed over a quota that is not what it is about: somebody else was counted in between.
fn lost_quota(error: &TxnError, own: &Key) -> bool {
    match error {
        TxnError::Conflict { key, .. } | TxnError::NotFound { key } => {
            key != own && **key.resource() == quotas()
        }
        _ => false,
    }
}

impl Inner {
    /// Commits a valid write together with what counts it. Whoever was faster with a quota is counted first.
    ///
    /// # Errors
    /// 403 in upstream's words when it does not fit; what else goes wrong is the inner result's.
    pub(crate) async fn commit_charged(
        &self,
        served: &Served,
        write: &Write<'_>,
        txn: Txn,
    ) -> Result<std::result::Result<Arc<Record>, TxnError>> {
        loop {
            let charged = self.charge(served, write).await?;
            let Some(own) = txn.operations.first().filter(|_| !charged.is_empty()) else {
                return Ok(self.commit(txn).await);
            };
            let own = own.key.clone();
            let mut all = txn.clone();
            all.operations.extend(charged);
            match self.commit(all).await {
                Err(error) if lost_quota(&error, &own) => {}
                committed => return Ok(committed),
            }
        }
    }

    /// What counts a valid write.
    ///
    /// # Errors
    /// 403 in upstream's words when it does not fit.
    pub(crate) async fn charge(&self, served: &Served, write: &Write<'_>) -> Result<Vec<Operation>> {
        let quotas = self.quotas_of(served, write.new.namespace()).await?;
        if quotas.is_empty() {
            return Ok(Vec::new());
        }
        let evaluator = evaluator(&served.resource);
        if !evaluator.handles(write) {
            return Ok(Vec::new());
        }
        let asked = Asked { evaluator: &*evaluator, write, now: self.moment().now };
        let refuse = |why: String| Box::new(Status::forbidden(&served.resource, write.new.name(), &why));
        let mut concerned = Vec::new();
        for record in quotas {
            let quota = stored::decode(&record);
            if asked.concerns(&quota).map_err(refuse)? {
                concerned.push((record, quota));
            }
        }
        let mut operations = Vec::new();
        for (record, quota) in concerned {
            let taken = asked.takes(&quota).map_err(refuse)?;
            if !taken.is_empty() {
                let change = Put::Put(self.counted(&quota, &taken)?);
                let expect = Expect::Revision(record.revision);
                operations.push(Operation { key: record.key.clone(), expect, change });
            }
        }
        Ok(operations)
    }

    async fn quotas_of(&self, served: &Served, namespace: &str) -> Result<Vec<Arc<Record>>> {
        if !served.info.namespaced || namespace.is_empty() || self.is_off(NAME) {
            return Ok(Vec::new());
        }
        // A registry without quotas has none in any namespace.
        let Ok(kind) = self.served(&quotas()) else { return Ok(Vec::new()) };
        let snapshot = self.snapshot(&kind).await?;
        Ok(snapshot.range(Some(namespace), None).cloned().collect())
    }

    /// A quota with so much more used.
    fn counted(&self, quota: &Object, taken: &Amounts) -> Result<Value> {
        let kind = self.served(&quotas())?;
        let used = quota.at(&["status", "used"]);
        let mut counted = quota.clone();
        for (name, amount) in taken {
            let sum = used.key(name).quantity().unwrap_or_default() + *amount;
            counted.set(&["status", "used", name], sum.to_string());
        }
        let versions = self.versions(&kind, Part::Subresource("status"));
        managed_fields::track(&versions, quota, &mut counted, MANAGER, self.moment().now);
        kind.stored_info().schema.normalise(&mut counted);
        draft::encode(&kind, &mut counted)
    }
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
                let less = *amount - before.get(name).copied().unwrap_or_default();
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
