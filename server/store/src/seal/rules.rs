//! Which resources are sealed, and with which providers (upstream's `transformerFromOverrides`).

use std::collections::HashMap;
use std::sync::Arc;

use super::provider::{Provider, Providers};
use crate::key::Resource;

const ANY: &str = "*";

/// A rule that could never count.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "resource {} is masked by earlier rule {}",
    portico_gostd::strconv::quote(resource),
    portico_gostd::strconv::quote(rule)
)]
pub struct MaskedRule {
    resource: String,
    rule: String,
}

/// The providers of resources: of one by name, of the others in its group, of all others.
#[derive(Debug, Default)]
pub struct SealRules {
    providers: HashMap<Resource, Providers>,
    /// Groups of records that are no objects of the API, which no rule is about.
    internal_groups: &'static [&'static str],
    /// Of these, what is sealed as another resource is.
    sealed_as: HashMap<Resource, Resource>,
}

impl SealRules {
    /// Without rules.
    #[must_use]
    pub fn new(internal_groups: &'static [&'static str]) -> Self {
        Self { internal_groups, ..Self::default() }
    }

    /// Records of an internal group are sealed as those of another resource.
    #[must_use]
    pub fn seal_as(mut self, records: Resource, other: Resource) -> Self {
        self.sealed_as.insert(records, other);
        self
    }

    /// Adds providers of a resource, behind those that it has: `secrets`, `things.example.com`, `*.` (the core group), `*.apps`
    /// or `*.*`.
    ///
    /// # Errors
    /// [`MaskedRule`].
    pub fn add(&mut self, resource: &str, providers: &[Arc<Provider>]) -> Result<(), MaskedRule> {
        let (name, group) = resource.split_once('.').unwrap_or((resource, ""));
        let resource = Resource::new(group, name);
        for rule in [Resource::new(group, ANY), Resource::new(ANY, ANY)] {
            if self.providers.contains_key(&rule) {
                return Err(MaskedRule { resource: shown(&resource), rule: shown(&rule) });
            }
        }
        let known = self.providers.entry(resource).or_default();
        *known = known.iter().chain(providers).cloned().collect();
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.providers.is_empty()
    }

    pub(super) fn find(&self, resource: &Resource) -> Option<&Providers> {
        if self.providers.is_empty() {
            return None;
        }
        if self.internal_groups.contains(&&*resource.group) {
            return self.sealed_as.get(resource).and_then(|other| self.find(other));
        }
        let of_group = || self.providers.get(&Resource::new(resource.group.clone(), ANY));
        let of_all = || self.providers.get(&Resource::new(ANY, ANY));
        self.providers.get(resource).or_else(of_group).or_else(of_all)
    }
}

/// As it stands in the file.
fn shown(resource: &Resource) -> String {
    match (&*resource.group, &*resource.resource) {
        ("", ANY) => "*.".to_owned(),
        ("", name) => name.to_owned(),
        (group, name) => format!("{name}.{group}"),
    }
}
