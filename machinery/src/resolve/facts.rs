//! Facts of APIServices, Services and EndpointSlices, updated object by object.
//!
//! Shared by the route compiler and the availability controller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::api_service::SharedValues;
use super::{ApiServiceFacts, ServiceFacts, ServiceIndex, ServiceKey, SliceFacts};
use crate::gvk::GroupResource;
use crate::object::Object;
use crate::route::Mirror;

/// Names of APIServices that an event affects.
pub type AffectedApiServices = BTreeSet<Arc<str>>;

/// Resources from which facts are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FactSource {
    /// `services`
    Services,
    /// `endpointslices.discovery.k8s.io`
    EndpointSlices,
    /// `apiservices.apiregistration.k8s.io`
    ApiServices,
}

impl FactSource {
    /// All resources in the preferred initial order: an APIService is then validated with its Service known.
    pub const ALL: [Self; 3] = [Self::Services, Self::EndpointSlices, Self::ApiServices];

    /// Returns the resource.
    #[must_use]
    pub fn resource(self) -> GroupResource {
        match self {
            Self::Services => GroupResource::new("", "services"),
            Self::EndpointSlices => GroupResource::new("discovery.k8s.io", "endpointslices"),
            Self::ApiServices => GroupResource::new("apiregistration.k8s.io", "apiservices"),
        }
    }
}

/// Facts for routing. Every change adds the names of the affected APIServices to a set.
#[derive(Debug, Default)]
pub struct RoutingFacts {
    api_services: BTreeMap<Arc<str>, Arc<ApiServiceFacts>>,
    services: ServiceIndex,
    shared: SharedValues,
}

impl RoutingFacts {
    /// Adds or updates an object.
    pub fn put(&mut self, watched: FactSource, object: &Object, touched: &mut AffectedApiServices) {
        let key = ServiceKey::new(object.namespace(), object.name());
        match watched {
            FactSource::Services => self.set_service(key, Some(ServiceFacts::of(object)), touched),
            FactSource::EndpointSlices => self.set_slice(key, SliceFacts::of(object), touched),
            FactSource::ApiServices => {
                let facts = Arc::new(ApiServiceFacts::of(object, &mut self.shared));
                self.set_api_service(facts.name.clone(), Some(facts), touched);
            }
        }
    }

    /// Removes an object.
    pub fn remove(&mut self, watched: FactSource, key: ServiceKey, touched: &mut AffectedApiServices) {
        match watched {
            FactSource::Services => self.set_service(key, None, touched),
            FactSource::EndpointSlices => self.set_slice(key, None, touched),
            FactSource::ApiServices => self.set_api_service(key.name.into(), None, touched),
        }
    }

    /// Replaces all objects of a resource: objects that are not in the list are removed.
    pub fn replace(
        &mut self,
        watched: FactSource,
        objects: impl Iterator<Item = Object>,
        touched: &mut AffectedApiServices,
    ) {
        let mut removed: BTreeSet<ServiceKey> = self.keys(watched).into_iter().collect();
        for object in objects {
            removed.remove(&ServiceKey::new(object.namespace(), object.name()));
            self.put(watched, &object, touched);
        }
        for key in removed {
            self.remove(watched, key, touched);
        }
    }

    fn keys(&self, watched: FactSource) -> Vec<ServiceKey> {
        match watched {
            FactSource::Services => self.services.service_keys().cloned().collect(),
            FactSource::EndpointSlices => self.services.slice_keys().cloned().collect(),
            FactSource::ApiServices => {
                self.api_services.keys().map(|name| ServiceKey::new("", &**name)).collect()
            }
        }
    }

    /// Sets or removes an APIService. It counts as affected even if none of its facts changed.
    fn set_api_service(
        &mut self,
        name: Arc<str>,
        facts: Option<Arc<ApiServiceFacts>>,
        touched: &mut AffectedApiServices,
    ) {
        let after = facts.as_deref().map(services_of).unwrap_or_default();
        let before = match facts {
            Some(facts) => self.api_services.insert(name.clone(), facts),
            None => self.api_services.remove(&name),
        };
        let before = before.as_deref().map(services_of).unwrap_or_default();
        for removed in before.difference(&after) {
            self.services.set_reference(&name, Some(removed.clone()), None);
        }
        for new in after.difference(&before) {
            self.services.set_reference(&name, None, Some(new.clone()));
        }
        touched.insert(name);
    }

    /// Sets or removes a Service.
    pub fn set_service(
        &mut self,
        key: ServiceKey,
        facts: Option<ServiceFacts>,
        touched: &mut AffectedApiServices,
    ) {
        touched.extend(self.services.set_service(key, facts));
    }

    /// Sets a slice with the name of its Service, or removes it. A slice without a Service is removed.
    pub fn set_slice(
        &mut self,
        key: ServiceKey,
        facts: Option<(String, SliceFacts)>,
        touched: &mut AffectedApiServices,
    ) {
        touched.extend(self.services.set_slice(key, facts));
    }

    /// Returns the facts of an APIService.
    #[must_use]
    pub fn api_service(&self, name: &str) -> Option<&ApiServiceFacts> {
        self.api_services.get(name).map(|facts| &**facts)
    }

    /// Returns all APIServices by name.
    pub fn api_services(&self) -> impl Iterator<Item = &ApiServiceFacts> {
        self.api_services.values().map(|facts| &**facts)
    }

    /// Returns all Services and their slices.
    #[must_use]
    pub fn services(&self) -> &ServiceIndex {
        &self.services
    }
}
/// Returns the Services to which an APIService refers: those of its backend and of the mirror.
fn services_of(facts: &ApiServiceFacts) -> BTreeSet<ServiceKey> {
    let Some(backend) = &facts.backend else { return BTreeSet::new() };
    let mirror = backend.policy.mirror.as_ref().and_then(Mirror::service);
    mirror.iter().chain([&backend.service]).map(ServiceKey::from).collect()
}
