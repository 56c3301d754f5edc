//! One APIService, compiled: pure, and the same whether it is compiled alone or with all others.
//!
//! Names are `<version>.<group>`, so no two APIServices claim the same path. What can be shadowed is the local chain
//! (by an APIService with a backend, upstream's aggregator comes first) and an APIService that claims the registration
//! API's own group (its REST container comes before the mux).

use std::sync::Arc;

use portico_machinery::resolve::{ApiServiceFacts, BackendFacts, CaBundle};
use portico_machinery::route::{
    Availability, Backend, BackendPolicy, ResolveError, Route, ServiceReference, Target,
};

use crate::{Index, Installed, Settings};

/// The registration API's own group: never proxied.
const OWN_GROUP: &str = "apiregistration.k8s.io";

/// What is hidden, and behind what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shadow {
    /// The APIService claims the registration API's own group and is not routed.
    ReservedGroup,
    /// The local chain serves this group version too, but requests go to the APIService's backend.
    LocalHidden,
    /// A local APIService for a group version that nothing here serves: requests end in 404.
    NothingServes,
}

impl Shadow {
    /// For people.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::ReservedGroup => {
                "the group is reserved for the registration API, this APIService is not routed"
            }
            Self::LocalHidden => "the backend replaces the same group version of this server",
            Self::NothingServes => "this server does not serve the group version, requests get 404",
        }
    }
}

/// A route, and what only Explain and the publisher ask about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The route; not published when the shadow is [`Shadow::ReservedGroup`].
    pub route: Arc<Route>,
    /// The bundle that the route's trust names.
    pub bundle: Option<CaBundle>,
    /// What is hidden.
    pub shadow: Option<Shadow>,
}

impl Compiled {
    /// Whether facades get it.
    #[must_use]
    pub fn is_published(&self) -> bool {
        self.shadow != Some(Shadow::ReservedGroup)
    }

    /// Whether it is the same but for the revision.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
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

/// Compiles the route of this name as of this revision; nothing when neither an APIService nor the local chain has it.
#[must_use]
pub fn compile(index: &Index, settings: &Settings, name: &str, revision: i64) -> Option<Compiled> {
    let installed = index.installed(name);
    match index.api_service(name) {
        Some(facts) if facts.group_version.group == OWN_GROUP => {
            installed.map(|i| local(name, i, revision)).or_else(|| {
                Some(Compiled {
                    shadow: Some(Shadow::ReservedGroup),
                    ..registered(index, settings, facts, false, revision)
                })
            })
        }
        Some(facts) => Some(registered(index, settings, facts, installed.is_some(), revision)),
        None => installed.map(|i| local(name, i, revision)),
    }
}

/// What the local chain serves though no APIService has it (deleted by hand, or not written yet).
fn local(name: &str, installed: &Installed, revision: i64) -> Compiled {
    let route = Route {
        name: name.to_owned(),
        group_version: installed.group_version.clone(),
        group_priority_minimum: installed.group_priority_minimum,
        version_priority: installed.version_priority,
        backend: None,
        available: Availability { ok: true, reason: "Local".to_owned(), ..Availability::default() },
        revision,
    };
    Compiled { route: Arc::new(route), bundle: None, shadow: None }
}

fn registered(
    index: &Index,
    settings: &Settings,
    facts: &ApiServiceFacts,
    installed: bool,
    revision: i64,
) -> Compiled {
    let shadow = match (&facts.backend, installed) {
        (Some(_), true) => Some(Shadow::LocalHidden),
        (None, false) => Some(Shadow::NothingServes),
        _ => None,
    };
    let route = Route {
        name: facts.name.to_string(),
        group_version: facts.group_version.clone(),
        group_priority_minimum: facts.group_priority_minimum,
        version_priority: facts.version_priority,
        backend: facts.backend.as_ref().map(|b| backend(index, settings, b).into()),
        available: facts.available.clone().unwrap_or_default(),
        revision,
    };
    let bundle = facts.backend.as_ref().filter(|b| !b.insecure).and_then(|b| b.bundle.clone());
    Compiled { route: Arc::new(route), bundle, shadow }
}

fn backend(index: &Index, settings: &Settings, facts: &BackendFacts) -> Backend {
    let (targets, resolve_error) = match targets(index, settings, facts) {
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
        policy: policy(index, settings, facts),
    }
}

/// As it is configured, with the addresses of a mirror that is a Service. One that leads nowhere gets nothing.
fn policy(index: &Index, settings: &Settings, facts: &BackendFacts) -> BackendPolicy {
    let mut policy = facts.policy.clone();
    if let Some(mirror) = &mut policy.mirror
        && let Some(service) = mirror.service()
    {
        mirror.targets = index.services().resolve(settings.mode, &service).unwrap_or_default();
    }
    policy
}

fn targets(index: &Index, settings: &Settings, facts: &BackendFacts) -> Result<Vec<Target>, ResolveError> {
    match (&facts.urls, &settings.loopback) {
        (Some(urls), _) => urls.clone(),
        (None, Some(own)) if is_own_service(&facts.service) => Ok(vec![own.clone()]),
        _ => index.services().resolve(settings.mode, &facts.service),
    }
}

/// `default/kubernetes:443` is this API itself, whatever the Service object says.
pub(crate) fn is_own_service(service: &ServiceReference) -> bool {
    (service.namespace.as_str(), service.name.as_str(), service.port) == ("default", "kubernetes", 443)
}
