//! Accepts names of definitions: within a group, each resource name and each kind is unique (conditions NamesAccepted and
//! Established).
//!
//! A name is in use once it is accepted, not when it is requested. Built-in kinds are not considered.

use std::collections::{HashMap, HashSet};

use portico_machinery::aggregate;
use portico_registry::DefinitionNames;
use portico_registry::condition::Condition;

use super::definition::Definition;
use portico_registry::definition::{ESTABLISHED, NAMES_ACCEPTED};

/// Accepted names of the definitions of a group, with the number of definitions that use each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamesInUse {
    resources: HashMap<Box<str>, usize>,
    kinds: HashMap<Box<str>, usize>,
}

impl NamesInUse {
    /// Counts names as used by one more definition.
    pub fn acquire(&mut self, names: &DefinitionNames) {
        resources(names).for_each(|name| *self.resources.entry(name.into()).or_default() += 1);
        kinds(names).for_each(|name| *self.kinds.entry(name.into()).or_default() += 1);
    }

    /// Counts names as used by one definition less.
    pub fn release(&mut self, names: &DefinitionNames) {
        resources(names).for_each(|name| decrement(&mut self.resources, name));
        kinds(names).for_each(|name| decrement(&mut self.kinds, name));
    }

    /// Returns true if any of these names is not in use.
    #[must_use]
    pub fn frees_any(&self, names: &DefinitionNames) -> bool {
        resources(names).any(|name| !self.resources.contains_key(name))
            || kinds(names).any(|name| !self.kinds.contains_key(name))
    }
}

/// Names that no other definition of the group may get.
pub struct ClaimedNames<'a> {
    resources: HashSet<&'a str>,
    kinds: HashSet<&'a str>,
}

impl<'a> ClaimedNames<'a> {
    pub fn from_names(names: &'a DefinitionNames) -> Self {
        Self { resources: resources(names).collect(), kinds: kinds(names).collect() }
    }

    /// Returns true if another definition requests any of them.
    pub fn overlaps(&self, names: &DefinitionNames) -> bool {
        resources(names).any(|name| self.resources.contains(name))
            || kinds(names).any(|name| self.kinds.contains(name))
    }
}

/// Returns the names that must be unique among resources.
fn resources(names: &DefinitionNames) -> impl Iterator<Item = &str> {
    let all = [&names.plural, &names.singular].into_iter().chain(&names.short_names);
    all.map(String::as_str).filter(|name| !name.is_empty())
}

/// Returns the names that must be unique among kinds.
fn kinds(names: &DefinitionNames) -> impl Iterator<Item = &str> {
    [&names.kind, &names.list_kind].into_iter().map(String::as_str).filter(|name| !name.is_empty())
}

fn decrement(counts: &mut HashMap<Box<str>, usize>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            counts.remove(name);
        }
    }
}

/// Accepted names of a definition, and its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamingDecision {
    /// `status.acceptedNames`: the requested names without conflicts.
    pub accepted: DefinitionNames,
    /// NamesAccepted, then Established.
    pub conditions: [Condition; 2],
}

/// Decides the accepted names and conditions; `None` if they do not change. `in_use` includes the definition's own names.
#[must_use]
pub fn decide(definition: &Definition, in_use: &NamesInUse) -> Option<NamingDecision> {
    // Upstream's rule: if the requested names equal the accepted ones, the conditions do not change.
    if definition.names == definition.accepted {
        return None;
    }
    let (accepted, names_accepted) = accept(definition, in_use);
    if accepted == definition.accepted && definition.has_condition(&names_accepted) {
        return None;
    }
    let established = established_condition(definition, &names_accepted);
    Some(NamingDecision { accepted, conditions: [names_accepted, established] })
}

/// Reason and message of a name conflict.
type Conflict = (&'static str, String);

/// Accepts names without conflicts. If there are several conflicts, the last one is reported.
fn accept(definition: &Definition, in_use: &NamesInUse) -> (DefinitionNames, Condition) {
    let (requested, current) = (&definition.names, &definition.accepted);
    let mut accepted = DefinitionNames { categories: requested.categories.clone(), ..current.clone() };
    let resource_names = [
        (&requested.plural, &mut accepted.plural, &in_use.resources, "PluralConflict"),
        (&requested.singular, &mut accepted.singular, &in_use.resources, "SingularConflict"),
    ];
    let refused =
        resource_names.into_iter().filter_map(|(wanted, has, pool, why)| grant(wanted, has, pool, why));
    let mut conflict = refused.last();
    match short_names(requested, current, in_use) {
        None => accepted.short_names.clone_from(&requested.short_names),
        refused => conflict = refused,
    }
    let kind_names = [
        (&requested.kind, &mut accepted.kind, &in_use.kinds, "KindConflict"),
        (&requested.list_kind, &mut accepted.list_kind, &in_use.kinds, "ListKindConflict"),
    ];
    let refused = kind_names.into_iter().filter_map(|(wanted, has, pool, why)| grant(wanted, has, pool, why));
    let reported = match refused.last().or(conflict) {
        Some((reason, message)) => Condition::new(NAMES_ACCEPTED, "False", reason, message),
        None => Condition::new(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found"),
    };
    (accepted, reported)
}

/// Accepts a name that the definition already has or that is free; otherwise returns the conflict.
fn grant(
    requested: &String,
    accepted: &mut String,
    pool: &HashMap<Box<str>, usize>,
    reason: &'static str,
) -> Option<Conflict> {
    if requested != accepted && pool.contains_key(requested.as_str()) {
        return Some((reason, already_in_use(requested)));
    }
    accepted.clone_from(requested);
    None
}

/// Returns the conflict if any short name is in use: short names are accepted all together or not at all.
fn short_names(
    requested: &DefinitionNames,
    current: &DefinitionNames,
    in_use: &NamesInUse,
) -> Option<Conflict> {
    let added = requested.short_names.iter().filter(|name| !current.short_names.contains(name));
    let conflicting = added.filter(|name| in_use.resources.contains_key(name.as_str()));
    let messages: Vec<String> = conflicting.map(|name| already_in_use(name)).collect();
    (!messages.is_empty()).then(|| ("ShortNamesConflict", aggregate(messages)))
}

fn already_in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

/// Returns the condition Established: unchanged, or initialized when the names are accepted or refused.
fn established_condition(definition: &Definition, names_accepted: &Condition) -> Condition {
    if !definition.has_true_condition(ESTABLISHED) && names_accepted.status == "True" {
        return Condition::new(ESTABLISHED, "False", "Installing", "the initial names have been accepted");
    }
    let not_accepted = || Condition::new(ESTABLISHED, "False", "NotAccepted", "not all names are accepted");
    definition.condition(ESTABLISHED).cloned().unwrap_or_else(not_accepted)
}

#[cfg(test)]
#[path = "naming_tests.rs"]
mod tests;
