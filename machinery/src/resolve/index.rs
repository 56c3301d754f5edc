//! Services and their slices by name, and who refers to them: what an event touches is found without a scan.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Mode, ServiceFacts, SliceFacts, resolve};
use crate::route::{ResolveError, ServiceReference, Target};

/// Namespace and name of a Service (or of a slice).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ServiceKey {
    /// Joins the two.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl From<&ServiceReference> for ServiceKey {
    fn from(reference: &ServiceReference) -> Self {
        Self::new(&reference.namespace, &reference.name)
    }
}

/// Everything that is known of Services. Setters answer whether anything changed, and touched names are those of the
/// referrers (APIServices, later webhooks) of a Service.
#[derive(Clone, Debug, Default)]
pub struct ServiceIndex {
    services: HashMap<ServiceKey, ServiceFacts>,
    slices: HashMap<ServiceKey, BTreeMap<String, SliceFacts>>,
    /// Which Service a slice belonged to when last seen: its label may change.
    slice_owners: HashMap<ServiceKey, String>,
    referrers: HashMap<ServiceKey, BTreeSet<Arc<str>>>,
}

impl ServiceIndex {
    /// A Service as it now is, or that it is gone. Answers the touched referrers.
    pub fn set_service(&mut self, key: ServiceKey, facts: Option<ServiceFacts>) -> Vec<Arc<str>> {
        let changed = match facts {
            Some(facts) => {
                self.services.get(&key) != Some(&facts) && {
                    self.services.insert(key.clone(), facts);
                    true
                }
            }
            None => self.services.remove(&key).is_some(),
        };
        if changed { self.referrers_of(&key) } else { Vec::new() }
    }

    /// A slice as it now is (with the name of its Service), or that it is gone or nobody's. Answers the touched
    /// referrers: those of the Service that it belongs to, and of the one that it belonged to.
    pub fn set_slice(&mut self, key: ServiceKey, facts: Option<(String, SliceFacts)>) -> Vec<Arc<str>> {
        let mut touched = Vec::new();
        let owner = facts.as_ref().map(|(owner, _)| owner.clone());
        let before = match &owner {
            Some(owner) => self.slice_owners.insert(key.clone(), owner.clone()),
            None => self.slice_owners.remove(&key),
        };
        if let Some(before) = before.filter(|before| Some(before) != owner.as_ref()) {
            let service = ServiceKey::new(&key.namespace, before);
            self.remove_slice(&service, &key.name);
            touched.extend(self.referrers_of(&service));
        }
        if let Some((owner, facts)) = facts {
            let service = ServiceKey::new(&key.namespace, owner);
            let slices = self.slices.entry(service.clone()).or_default();
            if slices.get(&key.name) != Some(&facts) {
                slices.insert(key.name, facts);
                touched.extend(self.referrers_of(&service));
            }
        }
        touched
    }

    fn remove_slice(&mut self, service: &ServiceKey, name: &str) {
        if let Some(slices) = self.slices.get_mut(service) {
            slices.remove(name);
            if slices.is_empty() {
                self.slices.remove(service);
            }
        }
    }

    /// Somebody's reference moved from one Service to another (or began, or ended).
    pub fn set_reference(&mut self, who: &Arc<str>, before: Option<ServiceKey>, after: Option<ServiceKey>) {
        if before == after {
            return;
        }
        if let Some(before) = before
            && let Some(set) = self.referrers.get_mut(&before)
        {
            set.remove(who);
            if set.is_empty() {
                self.referrers.remove(&before);
            }
        }
        if let Some(after) = after {
            self.referrers.entry(after).or_default().insert(who.clone());
        }
    }

    /// Every Service that is known.
    pub fn service_keys(&self) -> impl Iterator<Item = &ServiceKey> {
        self.services.keys()
    }

    /// Every slice that belongs to a Service, by its own name.
    pub fn slice_keys(&self) -> impl Iterator<Item = &ServiceKey> {
        self.slice_owners.keys()
    }

    /// Who refers to a Service, sorted.
    #[must_use]
    pub fn referrers_of(&self, key: &ServiceKey) -> Vec<Arc<str>> {
        self.referrers.get(key).map(|set| set.iter().cloned().collect()).unwrap_or_default()
    }

    /// One Service.
    #[must_use]
    pub fn service(&self, key: &ServiceKey) -> Option<&ServiceFacts> {
        self.services.get(key)
    }

    /// The slices of one Service, by name.
    #[must_use]
    pub fn slices(&self, key: &ServiceKey) -> Vec<&SliceFacts> {
        self.slices.get(key).map(|slices| slices.values().collect()).unwrap_or_default()
    }

    /// Resolves a reference with what is known now.
    ///
    /// # Errors
    /// As [`resolve`].
    pub fn resolve(&self, mode: Mode, reference: &ServiceReference) -> Result<Vec<Target>, ResolveError> {
        let key = ServiceKey::from(reference);
        resolve(mode, self.service(&key), &self.slices(&key), reference)
    }
}
