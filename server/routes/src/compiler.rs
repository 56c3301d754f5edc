//! Compiler of one APIService into a route. Pure, so that the result does not depend on which other APIServices are compiled.
//!
//! Names are `<version>.<group>`, so two APIServices never claim the same path. An APIService with a backend hides the local
//! chain (upstream's aggregator comes first), and an APIService in the group of the registration API is hidden itself (the REST
//! container of that group precedes the mux).

use std::sync::Arc;

use portico_machinery::resolve::{ApiServiceFacts, BackendFacts, CaBundle};
use portico_machinery::route::{
    Availability, Backend, BackendPolicy, ResolveError, Route, ServiceReference, Target,
};

use crate::{LocalGroupVersion, RouteIndex, Settings};

/// Group of the registration API, which is never proxied.
const REGISTRATION_GROUP: &str = "apiregistration.k8s.io";

/// Reason for which an APIService or the local chain is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shadow {
    /// The APIService is in the group of the registration API and is not routed.
    ReservedGroup,
    /// The local chain also serves this group version, but requests go to the APIService's backend.
    LocalHidden,
    /// A local APIService for a group version that this server does not serve: requests get 404.
    NotServed,
}

impl Shadow {
    /// Human-readable message.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::ReservedGroup => {
                "the group is reserved for the registration API, this APIService is not routed"
            }
            Self::LocalHidden => "the backend replaces the same group version of this server",
            Self::NotServed => "this server does not serve the group version, requests get 404",
        }
    }
}

/// Compiled route with data for Explain and the publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledRoute {
    /// Route; not published if the shadow is [`Shadow::ReservedGroup`].
    pub route: Arc<Route>,
    /// CA bundle that the route's trust refers to.
    pub bundle: Option<CaBundle>,
    /// Shadowing, if any.
    pub shadow: Option<Shadow>,
}

impl CompiledRoute {
    /// True if facades receive the route.
    #[must_use]
    pub fn is_published(&self) -> bool {
        self.shadow != Some(Shadow::ReservedGroup)
    }

    /// True if all fields except the revision are equal.
    #[must_use]
    pub fn equals_except_revision(&self, other: &Self) -> bool {
        let (a, b) = (&self.route, &other.route);
        self.shadow == other.shadow
            && a.name == b.name
            && a.group_version == b.group_version
            && a.group_priority_minimum == b.group_priority_minimum
            && a.version_priority == b.version_priority
            && a.backend == b.backend
            && a.available == b.available
    }
}

/// Compiles the route with this name at this revision; `None` if neither an APIService nor the local chain has it.
#[must_use]
pub fn compile(index: &RouteIndex, settings: &Settings, name: &str, revision: i64) -> Option<CompiledRoute> {
    let local_group_version = index.local_group_version(name);
    match index.api_service(name) {
        Some(facts) if facts.group_version.group == REGISTRATION_GROUP => {
            local_group_version.map(|i| compile_local(name, i, revision)).or_else(|| {
                Some(CompiledRoute {
                    shadow: Some(Shadow::ReservedGroup),
                    ..compile_api_service(index, settings, facts, false, revision)
                })
            })
        }
        Some(facts) => {
            Some(compile_api_service(index, settings, facts, local_group_version.is_some(), revision))
        }
        None => local_group_version.map(|i| compile_local(name, i, revision)),
    }
}

/// Route of a group version that the local chain serves without an APIService (deleted by a user, or not created yet).
fn compile_local(name: &str, group_version: &LocalGroupVersion, revision: i64) -> CompiledRoute {
    let route = Route {
        name: name.to_owned(),
        group_version: group_version.group_version.clone(),
        group_priority_minimum: group_version.group_priority_minimum,
        version_priority: group_version.version_priority,
        backend: None,
        available: Availability { ok: true, reason: "Local".to_owned(), ..Availability::default() },
        revision,
    };
    CompiledRoute { route: Arc::new(route), bundle: None, shadow: None }
}

fn compile_api_service(
    index: &RouteIndex,
    settings: &Settings,
    facts: &ApiServiceFacts,
    is_served_locally: bool,
    revision: i64,
) -> CompiledRoute {
    let shadow = match (&facts.backend, is_served_locally) {
        (Some(_), true) => Some(Shadow::LocalHidden),
        (None, false) => Some(Shadow::NotServed),
        _ => None,
    };
    let route = Route {
        name: facts.name.to_string(),
        group_version: facts.group_version.clone(),
        group_priority_minimum: facts.group_priority_minimum,
        version_priority: facts.version_priority,
        backend: facts.backend.as_ref().map(|b| compile_backend(index, settings, b).into()),
        available: facts.available.clone().unwrap_or_default(),
        revision,
    };
    let bundle = facts.backend.as_ref().filter(|b| !b.insecure).and_then(|b| b.bundle.clone());
    CompiledRoute { route: Arc::new(route), bundle, shadow }
}

fn compile_backend(index: &RouteIndex, settings: &Settings, facts: &BackendFacts) -> Backend {
    let (targets, resolve_error) = match resolve_targets(index, settings, facts) {
        Ok(targets) => (targets, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    Backend {
        service: facts.service.clone(),
        targets,
        resolve_error,
        server_name: facts.server_name.clone(),
        trust: facts.trust(),
        http2: facts.http2,
        policy: compile_policy(index, settings, facts),
    }
}

/// Policy of a backend, with the resolved addresses of a mirror that is a Service; empty if they cannot be resolved.
fn compile_policy(index: &RouteIndex, settings: &Settings, facts: &BackendFacts) -> BackendPolicy {
    let mut policy = facts.policy.clone();
    if let Some(mirror) = &mut policy.mirror
        && let Some(service) = mirror.service()
    {
        mirror.targets = index.services().resolve(settings.mode, &service).unwrap_or_default();
    }
    policy
}

fn resolve_targets(
    index: &RouteIndex,
    settings: &Settings,
    facts: &BackendFacts,
) -> Result<Vec<Target>, ResolveError> {
    match (&facts.urls, &settings.loopback) {
        (Some(urls), _) => urls.clone(),
        (None, Some(loopback)) if is_own_service(&facts.service) => Ok(vec![loopback.clone()]),
        _ => index.services().resolve(settings.mode, &facts.service),
    }
}

/// True for `default/kubernetes:443`, which is always this API, regardless of the Service object.
pub(crate) fn is_own_service(service: &ServiceReference) -> bool {
    (service.namespace.as_str(), service.name.as_str(), service.port) == ("default", "kubernetes", 443)
}
