//! Index of Services, slices and referrers by name: the APIServices that an event affects are found without a scan.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{ResolveMode, ServiceFacts, SliceFacts, resolve};
use crate::route::{ResolveError, ServiceReference, Target};

/// Namespace and name of a Service or slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceKey {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl ServiceKey {
    /// Creates a key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl From<&ServiceReference> for ServiceKey {
    fn from(reference: &ServiceReference) -> Self {
        Self::new(&reference.namespace, &reference.name)
    }
}

/// Index of Services. Setters return the names of affected referrers (APIServices and webhooks) of a Service, and none if the
/// facts did not change.
#[derive(Clone, Debug, Default)]
pub struct ServiceIndex {
    services: HashMap<ServiceKey, ServiceFacts>,
    slices: HashMap<ServiceKey, BTreeMap<String, SliceFacts>>,
    /// Service to which a slice last belonged: its label may change.
    slice_owners: HashMap<ServiceKey, String>,
    referrers: HashMap<ServiceKey, BTreeSet<Arc<str>>>,
}

impl ServiceIndex {
    /// Sets or removes a Service. Returns the affected referrers.
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

    /// Sets a slice with the name of its Service, or removes it. Returns the affected referrers: those of the current and of the
    /// previous Service.
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

    /// Moves the reference of a referrer from one Service to another; `None` adds or removes the reference.
    pub fn set_reference(
        &mut self,
        referrer: &Arc<str>,
        before: Option<ServiceKey>,
        after: Option<ServiceKey>,
    ) {
        if before == after {
            return;
        }
        if let Some(before) = before
            && let Some(set) = self.referrers.get_mut(&before)
        {
            set.remove(referrer);
            if set.is_empty() {
                self.referrers.remove(&before);
            }
        }
        if let Some(after) = after {
            self.referrers.entry(after).or_default().insert(referrer.clone());
        }
    }

    /// Returns the keys of all Services.
    pub fn service_keys(&self) -> impl Iterator<Item = &ServiceKey> {
        self.services.keys()
    }

    /// Returns the keys of all slices that belong to a Service.
    pub fn slice_keys(&self) -> impl Iterator<Item = &ServiceKey> {
        self.slice_owners.keys()
    }

    /// Returns the referrers of a Service, sorted.
    #[must_use]
    pub fn referrers_of(&self, key: &ServiceKey) -> Vec<Arc<str>> {
        self.referrers.get(key).map(|set| set.iter().cloned().collect()).unwrap_or_default()
    }

    /// Returns the facts of a Service.
    #[must_use]
    pub fn service(&self, key: &ServiceKey) -> Option<&ServiceFacts> {
        self.services.get(key)
    }

    /// Returns the slices of a Service, by name.
    #[must_use]
    pub fn slices(&self, key: &ServiceKey) -> Vec<&SliceFacts> {
        self.slices.get(key).map(|slices| slices.values().collect()).unwrap_or_default()
    }

    /// Resolves a reference with the current facts.
    ///
    /// # Errors
    /// Same as [`resolve`].
    pub fn resolve(
        &self,
        mode: ResolveMode,
        reference: &ServiceReference,
    ) -> Result<Vec<Target>, ResolveError> {
        let key = ServiceKey::from(reference);
        resolve(mode, self.service(&key), &self.slices(&key), reference)
    }
}
