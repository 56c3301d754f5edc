//! The services behind APIServices, their group versions, and their last good documents. Pure: uses no network and no clock.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::discovery::{ServedVersion, Source, VersionDiscovery};
use portico_machinery::route::{Backend, Route, ServiceReference, Trust};

use super::service_state::{FetchJob, OpenApiDocuments, ServiceDiscovery};
use crate::documents::Documents;

/// Unit of fetching: a service with its trust settings. Shared by all its group versions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ServiceKey(Arc<ServiceIdentity>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct ServiceIdentity {
    service: ServiceReference,
    server_name: String,
    trust: Trust,
}

impl ServiceKey {
    fn for_backend(backend: &Backend) -> Self {
        Self(Arc::new(ServiceIdentity {
            service: backend.service.clone(),
            server_name: backend.server_name.clone(),
            trust: backend.trust.clone(),
        }))
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServiceReference { namespace, name, port } = &self.0.service;
        write!(f, "{namespace}/{name}:{port}")
    }
}

#[derive(Debug, Default)]
struct Service {
    backend: Arc<Backend>,
    /// Group versions; true if the route is available.
    members: BTreeMap<GroupVersion, bool>,
    last_discovery: Option<Arc<ServiceDiscovery>>,
    /// Hashes of the members' discovery documents.
    discovery: HashMap<GroupVersion, String>,
    openapi: Arc<OpenApiDocuments>,
    /// Members whose last fetch failed.
    failed: HashSet<GroupVersion>,
    generation: u64,
}

/// All services, and the service of each APIService.
#[derive(Debug, Default)]
pub(super) struct Services {
    services: HashMap<ServiceKey, Service>,
    /// Group version and service by APIService name.
    owners: HashMap<String, (GroupVersion, ServiceKey)>,
    by_group_version: HashMap<GroupVersion, ServiceKey>,
}

/// Effect of a change of a route.
#[derive(Debug, Default)]
pub(super) struct RouteEffect {
    /// Service to fetch from.
    pub fetch: Option<ServiceKey>,
    /// Group versions whose entry may have changed.
    pub affected: Vec<GroupVersion>,
}

impl Services {
    /// Returns true if there are no services.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Sets or removes the route of an APIService.
    pub fn set_route(&mut self, name: &str, route: Option<Arc<Route>>) -> RouteEffect {
        let mut effect = RouteEffect::default();
        let remote = route.and_then(|route| Some((route.clone(), route.backend.clone()?)));
        let key = remote.as_ref().map(|(_, backend)| self.key(backend));
        if let Some((gv, old)) = self.owners.get(name).cloned()
            && (Some(&old) != key.as_ref() || remote.as_ref().is_some_and(|(r, _)| r.group_version != gv))
        {
            self.remove_member(name, &gv, &old);
            effect.affected.push(gv);
        }
        let (Some((route, backend)), Some(key)) = (remote, key) else { return effect };
        let gv = route.group_version.clone();
        let is_known = self.owners.insert(name.to_owned(), (gv.clone(), key.clone())).is_some();
        self.by_group_version.insert(gv.clone(), key.clone());
        let service = self.services.entry(key.clone()).or_default();
        let was_available = service.members.insert(gv.clone(), route.available.ok);
        let has_moved = service.backend != backend;
        if has_moved {
            service.backend = backend;
        }
        if has_moved || was_available != Some(route.available.ok) {
            effect.affected.push(gv);
        }
        // A backend that has moved is fetched at once if any of its routes is available, because all of them have moved.
        let became_available = route.available.ok && (!is_known || was_available != Some(true));
        if became_available || has_moved {
            service.generation += 1;
            effect.fetch = service.members.values().any(|available| *available).then_some(key);
        }
        effect
    }

    /// Returns the key shared by the other group versions of this service, if there are any.
    fn key(&self, backend: &Backend) -> ServiceKey {
        let key = ServiceKey::for_backend(backend);
        self.services.get_key_value(&key).map_or(key, |(existing, _)| existing.clone())
    }

    fn remove_member(&mut self, name: &str, gv: &GroupVersion, key: &ServiceKey) {
        self.owners.remove(name);
        if self.by_group_version.get(gv) == Some(key) {
            self.by_group_version.remove(gv);
        }
        if let Some(service) = self.services.get_mut(key) {
            service.members.remove(gv);
            service.discovery.remove(gv);
            service.failed.remove(gv);
            if service.members.is_empty() {
                self.services.remove(key);
            }
        }
    }

    /// Returns the input of a fetch; `None` if the service is gone or has no available route.
    pub fn job(&self, key: &ServiceKey) -> Option<FetchJob> {
        let service = self.services.get(key)?;
        service.members.values().any(|available| *available).then(|| FetchJob {
            backend: service.backend.clone(),
            members: service.members.keys().cloned().collect(),
            available: service.members.iter().filter(|(_, ok)| **ok).map(|(gv, _)| gv.clone()).collect(),
            discovery: service.last_discovery.clone(),
            openapi: service.openapi.clone(),
            generation: service.generation,
        })
    }

    /// Returns the group versions of a service.
    pub fn members(&self, key: &ServiceKey) -> Vec<GroupVersion> {
        self.services.get(key).map(|s| s.members.keys().cloned().collect()).unwrap_or_default()
    }

    /// Stores fetched discovery, unless the service has moved since the request. A member without a list keeps its last one, and
    /// is stale if the list could not be fetched.
    pub fn set_discovery(
        &mut self,
        key: &ServiceKey,
        job: &FetchJob,
        discovery: Arc<ServiceDiscovery>,
        documents: &Documents,
    ) {
        let service = self.services.get_mut(key);
        let Some(service) = service.filter(|service| Arc::ptr_eq(&service.backend, &job.backend)) else {
            return;
        };
        let is_latest = service.generation == job.generation;
        for gv in service.members.keys() {
            let empty = || VersionDiscovery {
                version: gv.version.clone(),
                freshness: "Current".to_owned(),
                ..VersionDiscovery::default()
            };
            let version = discovery.versions.get(gv).cloned();
            let Some(document) = version.or_else(|| discovery.is_complete.then(empty)) else {
                if is_latest && discovery.failures.contains_key(gv) {
                    service.failed.insert(gv.clone());
                }
                continue;
            };
            if is_latest {
                service.failed.remove(gv);
            }
            // Encoding structs of strings cannot fail.
            let json = serde_json::to_vec(&document).unwrap_or_default();
            service.discovery.insert(gv.clone(), documents.put(&json));
        }
        service.last_discovery = Some(discovery);
    }

    /// Records a failed fetch: the last documents remain and are marked as stale.
    pub fn set_failed(&mut self, key: &ServiceKey, job: &FetchJob) {
        if let Some(service) = self.services.get_mut(key)
            && service.generation == job.generation
        {
            service.failed = service.members.keys().cloned().collect();
        }
    }

    /// Stores OpenAPI documents, even if there is also an error.
    pub fn set_openapi(
        &mut self,
        key: &ServiceKey,
        _: &FetchJob,
        fetched: (OpenApiDocuments, Result<(), String>),
    ) -> Result<(), String> {
        if let Some(service) = self.services.get_mut(key) {
            service.openapi = Arc::new(fetched.0);
        }
        fetched.1
    }

    /// Returns the entry of a group version; `None` before the first response of its backend.
    pub fn entry(&self, gv: &GroupVersion) -> Option<ServedVersion> {
        let service = self.services.get(self.by_group_version.get(gv)?)?;
        let available = *service.members.get(gv)?;
        let discovery = service.discovery.get(gv).cloned().unwrap_or_default();
        let (v3, v2) = (service.openapi.v3.get(gv), service.openapi.v2.parts.get(gv));
        if discovery.is_empty() && v3.is_none() && v2.is_none() {
            return None;
        }
        Some(ServedVersion {
            group: gv.group.clone(),
            version: gv.version.clone(),
            source: Source::Aggregator,
            stale: service.failed.contains(gv) || !available,
            discovery,
            resource_list: String::new(),
            openapi_v3: v3.map(|d| d.hash.clone()).unwrap_or_default(),
            openapi_v2: v2.cloned().unwrap_or_default(),
            openapi_v3_etag: v3.map(|d| d.etag.clone()).unwrap_or_default(),
        })
    }
}
