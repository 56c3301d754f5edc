//! Resources to seal, and their providers (upstream's `transformerFromOverrides`).

use std::collections::HashMap;
use std::sync::Arc;

use super::provider::{Provider, Providers};
use crate::key::Resource;

const ANY: &str = "*";

/// Rule that can never apply, because an earlier rule covers its resources.
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

/// Providers of resources: by resource, by group, and for all other resources.
#[derive(Debug, Default)]
pub struct SealRules {
    providers: HashMap<Resource, Providers>,
    /// Groups of records that are not API objects. Rules do not cover them.
    internal_groups: &'static [&'static str],
    /// Resources of internal groups that are sealed like another resource.
    sealed_as: HashMap<Resource, Resource>,
}

impl SealRules {
    /// Creates an empty set of rules.
    #[must_use]
    pub fn new(internal_groups: &'static [&'static str]) -> Self {
        Self { internal_groups, ..Self::default() }
    }

    /// Seals records of an internal group like those of another resource.
    #[must_use]
    pub fn seal_as(mut self, records: Resource, other: Resource) -> Self {
        self.sealed_as.insert(records, other);
        self
    }

    /// Appends providers of a resource: `secrets`, `things.example.com`, `*.` (the core group), `*.apps` or `*.*`.
    ///
    /// # Errors
    /// [`MaskedRule`].
    pub fn add(&mut self, resource: &str, providers: &[Arc<Provider>]) -> Result<(), MaskedRule> {
        let (name, group) = resource.split_once('.').unwrap_or((resource, ""));
        let resource = Resource::new(group, name);
        for rule in [Resource::new(group, ANY), Resource::new(ANY, ANY)] {
            if self.providers.contains_key(&rule) {
                return Err(MaskedRule { resource: display_name(&resource), rule: display_name(&rule) });
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
        let group_rule = || self.providers.get(&Resource::new(resource.group.clone(), ANY));
        let default_rule = || self.providers.get(&Resource::new(ANY, ANY));
        self.providers.get(resource).or_else(group_rule).or_else(default_rule)
    }
}

/// Returns the resource as it is written in the configuration file.
fn display_name(resource: &Resource) -> String {
    match (&*resource.group, &*resource.resource) {
        ("", ANY) => "*.".to_owned(),
        ("", name) => name.to_owned(),
        (group, name) => format!("{name}.{group}"),
    }
}
