//! Amounts that a write takes from the quotas of its namespace, or the reason for a refusal (upstream's `CheckRequest`).

use portico_machinery::{GroupResource, Object, Quantity, Reason, Status};
use portico_quota::{
    DeviceContext, Evaluator, ResourceList, add_resources, evaluator, matches_scopes, resource_list,
    scope_requirements,
};
use portico_registry::{ObjectPart, Result, Write};

use super::limited_resources::{LimitedResource, UncoveredDemand};

/// Demand of one write, checked against all quotas of its namespace.
pub(super) struct QuotaDemand<'a> {
    resource: &'a GroupResource,
    evaluator: Box<dyn Evaluator + 'a>,
    limited_resources: &'a [LimitedResource],
    write: &'a Write<'a>,
    /// Usage of the object.
    usage: ResourceList,
    /// Usage of the object before the write; `None` for a create.
    previous_usage: Option<ResourceList>,
}

impl<'a> QuotaDemand<'a> {
    pub(super) fn new(
        resource: &'a GroupResource,
        device_context: &'a DeviceContext,
        limited_resources: &'a [LimitedResource],
        write: &'a Write<'a>,
        now: jiff::Timestamp,
    ) -> Self {
        let evaluator = evaluator(resource, device_context);
        let usage = evaluator.usage(write.new, now);
        let previous_usage = write.old.map(|old| evaluator.usage(old, now));
        Self { resource, evaluator, limited_resources, write, usage, previous_usage }
    }

    /// Returns the amounts that the write takes from each quota; empty for a quota that does not match the write.
    ///
    /// # Errors
    /// 403 with upstream's message; 500, as in upstream, if no quota covers a scope.
    pub(super) fn amounts_taken(&self, quotas: &[&Object]) -> Result<Vec<ResourceList>> {
        let object = self.write.new;
        let mut uncovered = UncoveredDemand::new(
            self.limited_resources,
            self.resource,
            &*self.evaluator,
            object,
            &self.usage,
        );
        let mut matching = Vec::with_capacity(quotas.len());
        for quota in quotas {
            matching.push(self.matches_quota(quota, &mut uncovered).map_err(|error| self.refuse(&error))?);
        }
        self.check_signs().map_err(|error| self.refuse(&error))?;
        let needed = |(quota, matches): (&&Object, &bool)| match matches {
            true => self.amounts_needed(quota),
            false => ResourceList::new(),
        };
        let needed: Vec<ResourceList> = quotas.iter().zip(&matching).map(needed).collect();
        let needs_nothing = match matching.contains(&true) {
            true => needed.iter().all(ResourceList::is_empty),
            false => self.increase().is_empty(),
        };
        if needs_nothing {
            return Ok(vec![ResourceList::new(); quotas.len()]);
        }
        if let Some(names) = uncovered.names() {
            return Err(self.refuse(&format!("insufficient quota to consume: {names}")));
        }
        if let Some(scopes) = uncovered.scopes() {
            let message = format!("insufficient quota to match these scopes: {scopes}");
            return Err(Box::new(Status::failure(Reason::Unknown, message)));
        }
        let amounts = quotas.iter().zip(needed).map(|(quota, needed)| self.take_from(quota, needed));
        amounts.collect::<Result<_, String>>().map_err(|error| self.refuse(&error))
    }

    fn refuse(&self, message: &str) -> Box<Status> {
        Box::new(Status::forbidden(self.resource, self.write.new.name(), message))
    }

    /// True if a quota matches the write. The write must then set the limited resources, and the quota's status must
    /// have their usage.
    fn matches_quota(&self, quota: &Object, uncovered: &mut UncoveredDemand<'_>) -> Result<bool, String> {
        let (name, hard) = (quota.name(), quota.at(&["status", "hard"]));
        let scopes = scope_requirements(quota);
        uncovered.cover_scopes(&scopes, &*self.evaluator, self.write.new);
        let mut limited: Vec<&str> = hard
            .entries()
            .map(|(name, _)| name)
            .filter(|name| self.evaluator.matches_resource(name))
            .collect();
        if limited.is_empty() || !matches_scopes(&scopes, self.write.new, &*self.evaluator) {
            return Ok(false);
        }
        self.evaluator
            .check_constraints(&limited, self.write.new)
            .map_err(|error| format!("failed quota: {name}: {error}"))?;
        let used = quota.at(&["status", "used"]);
        if limited.iter().all(|resource| used.key(resource).is_present()) {
            uncovered.cover_names(&limited);
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
    fn amounts_needed(&self, quota: &Object) -> ResourceList {
        let was_counted = self
            .write
            .old
            .is_some_and(|old| matches_scopes(&scope_requirements(quota), old, &*self.evaluator));
        if was_counted {
            return self.increase();
        }
        let mut all = self.usage.clone();
        all.retain(|_, amount| !amount.is_zero());
        all
    }

    /// Returns the positive differences between the usage and the previous usage.
    fn increase(&self) -> ResourceList {
        let mut increase = self.usage.clone();
        if let Some(before) = &self.previous_usage {
            for (name, amount) in &mut increase {
                let less = amount.minus(before.get(name).unwrap_or(&Quantity::ZERO));
                *amount = less.max(Quantity::ZERO);
            }
        }
        increase.retain(|_, amount| !amount.is_zero());
        increase
    }

    /// Returns the needed amounts that a quota limits, if the quota has room for them.
    fn take_from(&self, quota: &Object, mut amounts: ResourceList) -> Result<ResourceList, String> {
        let [hard, used] = ["hard", "used"].map(|list| resource_list(&quota.at(&["status", list])));
        amounts.retain(|resource, _| hard.contains_key(resource));
        // A status reports usage that exists already, so it is not limited.
        if self.write.part != ObjectPart::Subresource("status") {
            check_fits(quota.name(), &amounts, &used, &hard)?;
        }
        Ok(amounts)
    }
}

fn check_fits(
    name: &str,
    amounts: &ResourceList,
    used: &ResourceList,
    hard: &ResourceList,
) -> Result<(), String> {
    let mut after = used.clone();
    add_resources(&mut after, amounts);
    let exceeded: Vec<&String> =
        amounts.keys().filter(|resource| after[*resource] > hard[*resource]).collect();
    if exceeded.is_empty() {
        return Ok(());
    }
    let printed = |list: &ResourceList| {
        let each = exceeded.iter().filter_map(|resource| Some((resource, list.get(*resource)?)));
        each.map(|(resource, amount)| format!("{resource}={amount}")).collect::<Vec<_>>().join(",")
    };
    let (requested, used, limited) = (printed(amounts), printed(used), printed(hard));
    Err(format!("exceeded quota: {name}, requested: {requested}, used: {used}, limited: {limited}"))
}
