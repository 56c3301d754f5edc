//! What is known of APIServices, Services and EndpointSlices, kept up to date object by object.
//!
//! The route compiler and the availability controller read the same one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::api_service::Alike;
use super::{ApiServiceFacts, ServiceFacts, ServiceIndex, ServiceKey, SliceFacts};
use crate::gvk::GroupResource;
use crate::object::Object;
use crate::route::Mirror;

/// Names of APIServices that an event touches.
pub type Touched = BTreeSet<Arc<str>>;

/// The resources that facts are read off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Watched {
    /// `services`
    Services,
    /// `endpointslices.discovery.k8s.io`
    EndpointSlices,
    /// `apiservices.apiregistration.k8s.io`
    ApiServices,
}

impl Watched {
    /// All, in the order in which they are best read first: an APIService is then validated with its Service known.
    pub const ALL: [Self; 3] = [Self::Services, Self::EndpointSlices, Self::ApiServices];

    /// The resource.
    #[must_use]
    pub fn resource(self) -> GroupResource {
        match self {
            Self::Services => GroupResource::new("", "services"),
            Self::EndpointSlices => GroupResource::new("discovery.k8s.io", "endpointslices"),
            Self::ApiServices => GroupResource::new("apiregistration.k8s.io", "apiservices"),
        }
    }
}

/// The facts. Every change adds the names of the APIServices that it touches to a set.
#[derive(Debug, Default)]
pub struct Facts {
    api_services: BTreeMap<Arc<str>, Arc<ApiServiceFacts>>,
    services: ServiceIndex,
    alike: Alike,
}

impl Facts {
    /// An object is there or changed.
    pub fn put(&mut self, watched: Watched, object: &Object, touched: &mut Touched) {
        let key = ServiceKey::new(object.namespace(), object.name());
        match watched {
            Watched::Services => self.set_service(key, Some(ServiceFacts::of(object)), touched),
            Watched::EndpointSlices => self.set_slice(key, SliceFacts::of(object), touched),
            Watched::ApiServices => {
                let facts = Arc::new(ApiServiceFacts::of(object, &mut self.alike));
                self.set_api_service(facts.name.clone(), Some(facts), touched);
            }
        }
    }

    /// An object is gone.
    pub fn remove(&mut self, watched: Watched, key: ServiceKey, touched: &mut Touched) {
        match watched {
            Watched::Services => self.set_service(key, None, touched),
            Watched::EndpointSlices => self.set_slice(key, None, touched),
            Watched::ApiServices => self.set_api_service(key.name.into(), None, touched),
        }
    }

    /// These are all objects of the resource: others are gone.
    pub fn replace(
        &mut self,
        watched: Watched,
        objects: impl Iterator<Item = Object>,
        touched: &mut Touched,
    ) {
        let mut gone: BTreeSet<ServiceKey> = self.keys(watched).into_iter().collect();
        for object in objects {
            gone.remove(&ServiceKey::new(object.namespace(), object.name()));
            self.put(watched, &object, touched);
        }
        for key in gone {
            self.remove(watched, key, touched);
        }
    }

    fn keys(&self, watched: Watched) -> Vec<ServiceKey> {
        match watched {
            Watched::Services => self.services.service_keys().cloned().collect(),
            Watched::EndpointSlices => self.services.slice_keys().cloned().collect(),
            Watched::ApiServices => {
                self.api_services.keys().map(|name| ServiceKey::new("", &**name)).collect()
            }
        }
    }

    /// An APIService as it now is, or that it is gone. It is touched even when nothing that is read changed.
    fn set_api_service(
        &mut self,
        name: Arc<str>,
        facts: Option<Arc<ApiServiceFacts>>,
        touched: &mut Touched,
    ) {
        let after = facts.as_deref().map(services_of).unwrap_or_default();
        let before = match facts {
            Some(facts) => self.api_services.insert(name.clone(), facts),
            None => self.api_services.remove(&name),
        };
        let before = before.as_deref().map(services_of).unwrap_or_default();
        for gone in before.difference(&after) {
            self.services.set_reference(&name, Some(gone.clone()), None);
        }
        for new in after.difference(&before) {
            self.services.set_reference(&name, None, Some(new.clone()));
        }
        touched.insert(name);
    }

    /// A Service as it now is, or that it is gone.
    pub fn set_service(&mut self, key: ServiceKey, facts: Option<ServiceFacts>, touched: &mut Touched) {
        touched.extend(self.services.set_service(key, facts));
    }

    /// A slice as it now is with the name of its Service, or that it is gone or nobody's.
    pub fn set_slice(&mut self, key: ServiceKey, facts: Option<(String, SliceFacts)>, touched: &mut Touched) {
        touched.extend(self.services.set_slice(key, facts));
    }

    /// One APIService.
    #[must_use]
    pub fn api_service(&self, name: &str) -> Option<&ApiServiceFacts> {
        self.api_services.get(name).map(|facts| &**facts)
    }

    /// All APIServices, by name.
    pub fn api_services(&self) -> impl Iterator<Item = &ApiServiceFacts> {
        self.api_services.values().map(|facts| &**facts)
    }

    /// All Services and their slices.
    #[must_use]
    pub fn services(&self) -> &ServiceIndex {
        &self.services
    }
}
/// The Services that an APIService refers to: its backend's, and that of the mirror.
fn services_of(facts: &ApiServiceFacts) -> BTreeSet<ServiceKey> {
    let Some(backend) = &facts.backend else { return BTreeSet::new() };
    let mirror = backend.policy.mirror.as_ref().and_then(Mirror::service);
    mirror.iter().chain([&backend.service]).map(ServiceKey::from).collect()
}
