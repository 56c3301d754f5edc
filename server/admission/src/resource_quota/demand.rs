//! Amounts that a write takes from the quotas of its namespace, or the reason for a refusal (upstream's `CheckRequest`).

use portico_machinery::{GroupResource, Object, Quantity, Reason, Status};
use portico_quota::{Amounts, Evaluator, Surroundings, add, amounts, evaluator, matches, requirements};
use portico_registry::{Part, Result, Write};

use super::limited::{LimitedResource, Uncovered};

/// Demand of one write, checked against all quotas of its namespace.
pub(super) struct QuotaDemand<'a> {
    resource: &'a GroupResource,
    evaluator: Box<dyn Evaluator + 'a>,
    limited: &'a [LimitedResource],
    write: &'a Write<'a>,
    /// Usage of the object.
    usage: Amounts,
    /// Usage of the object before the write; `None` for a create.
    before: Option<Amounts>,
}

impl<'a> QuotaDemand<'a> {
    pub(super) fn new(
        resource: &'a GroupResource,
        surroundings: &'a Surroundings,
        limited: &'a [LimitedResource],
        write: &'a Write<'a>,
        now: jiff::Timestamp,
    ) -> Self {
        let evaluator = evaluator(resource, surroundings);
        let usage = evaluator.usage(write.new, now);
        let before = write.old.map(|old| evaluator.usage(old, now));
        Self { resource, evaluator, limited, write, usage, before }
    }

    /// Returns the amounts that the write takes from each quota; empty for a quota that does not match the write.
    ///
    /// # Errors
    /// 403 with upstream's message; 500, as in upstream, if no quota covers a scope.
    pub(super) fn taken(&self, quotas: &[&Object]) -> Result<Vec<Amounts>> {
        let object = self.write.new;
        let mut uncovered = Uncovered::of(self.limited, self.resource, &*self.evaluator, object, &self.usage);
        let mut concerned = Vec::with_capacity(quotas.len());
        for quota in quotas {
            concerned.push(self.concerns(quota, &mut uncovered).map_err(|why| self.refuse(&why))?);
        }
        self.check_signs().map_err(|why| self.refuse(&why))?;
        let needed = |(quota, concerned): (&&Object, &bool)| match concerned {
            true => self.needed(quota),
            false => Amounts::new(),
        };
        let needed: Vec<Amounts> = quotas.iter().zip(&concerned).map(needed).collect();
        let needs_nothing = match concerned.contains(&true) {
            true => needed.iter().all(Amounts::is_empty),
            false => self.more().is_empty(),
        };
        if needs_nothing {
            return Ok(vec![Amounts::new(); quotas.len()]);
        }
        if let Some(names) = uncovered.names() {
            return Err(self.refuse(&format!("insufficient quota to consume: {names}")));
        }
        if let Some(scopes) = uncovered.scopes() {
            let why = format!("insufficient quota to match these scopes: {scopes}");
            return Err(Box::new(Status::failure(Reason::Unknown, why)));
        }
        let taken = quotas.iter().zip(needed).map(|(quota, needed)| self.takes(quota, needed));
        taken.collect::<Result<_, String>>().map_err(|why| self.refuse(&why))
    }

    fn refuse(&self, why: &str) -> Box<Status> {
        Box::new(Status::forbidden(self.resource, self.write.new.name(), why))
    }

    /// True if a quota matches the write. The write must then set the limited resources, and the quota's status must
    /// have their usage.
    fn concerns(&self, quota: &Object, uncovered: &mut Uncovered<'_>) -> Result<bool, String> {
        let (name, hard) = (quota.name(), quota.at(&["status", "hard"]));
        let scopes = requirements(quota);
        uncovered.cover_scopes(&scopes, &*self.evaluator, self.write.new);
        let mut limited: Vec<&str> =
            hard.entries().map(|(name, _)| name).filter(|name| self.evaluator.counts(name)).collect();
        if limited.is_empty() || !matches(&scopes, self.write.new, &*self.evaluator) {
            return Ok(false);
        }
        self.evaluator
            .constraints(&limited, self.write.new)
            .map_err(|why| format!("failed quota: {name}: {why}"))?;
        let used = quota.at(&["status", "used"]);
        if limited.iter().all(|resource| used.key(resource).is_present()) {
            uncovered.cover(&limited);
            return Ok(true);
        }
        limited.sort_unstable();
        Err(format!("status unknown for quota: {name}, resources: {}", limited.join(",")))
    }

    fn check_signs(&self) -> Result<(), String> {
        let negative = self.usage.iter().filter(|(_, amount)| amount.is_negative());
        let negative: Vec<&str> = negative.map(|(name, _)| name.as_str()).collect();
        if negative.is_empty() {
            return Ok(());
        }
        Err(format!("quota usage is negative for resource(s): {}", negative.join(",")))
    }

    /// Returns the amounts that the write needs from a matching quota: the increase, or all amounts if the quota did not match
    /// the previous state.
    fn needed(&self, quota: &Object) -> Amounts {
        let was_counted =
            self.write.old.is_some_and(|old| matches(&requirements(quota), old, &*self.evaluator));
        if was_counted {
            return self.more();
        }
        let mut all = self.usage.clone();
        all.retain(|_, amount| !amount.is_zero());
        all
    }

    /// Returns the positive differences between the usage and the previous usage.
    fn more(&self) -> Amounts {
        let mut more = self.usage.clone();
        if let Some(before) = &self.before {
            for (name, amount) in &mut more {
                let less = amount.minus(before.get(name).unwrap_or(&Quantity::ZERO));
                *amount = less.max(Quantity::ZERO);
            }
        }
        more.retain(|_, amount| !amount.is_zero());
        more
    }

    /// Returns the needed amounts that a quota limits, if the quota has room for them.
    fn takes(&self, quota: &Object, mut needed: Amounts) -> Result<Amounts, String> {
        let [hard, used] = ["hard", "used"].map(|list| amounts(&quota.at(&["status", list])));
        needed.retain(|resource, _| hard.contains_key(resource));
        // A status reports usage that exists already, so it is not limited.
        if self.write.part != Part::Subresource("status") {
            fits(quota.name(), &needed, &used, &hard)?;
        }
        Ok(needed)
    }
}

fn fits(name: &str, taken: &Amounts, used: &Amounts, hard: &Amounts) -> Result<(), String> {
    let mut after = used.clone();
    add(&mut after, taken);
    let exceeded: Vec<&String> = taken.keys().filter(|resource| after[*resource] > hard[*resource]).collect();
    if exceeded.is_empty() {
        return Ok(());
    }
    let printed = |of: &Amounts| {
        let each = exceeded.iter().filter_map(|resource| Some((resource, of.get(*resource)?)));
        each.map(|(resource, amount)| format!("{resource}={amount}")).collect::<Vec<_>>().join(",")
    };
    let (requested, used, limited) = (printed(taken), printed(used), printed(hard));
    Err(format!("exceeded quota: {name}, requested: {requested}, used: {used}, limited: {limited}"))
}
