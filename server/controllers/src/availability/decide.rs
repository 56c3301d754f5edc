//! What the Available condition of an APIService should be: upstream's table R1-R9, pure.
//!
//! It must not know time, sockets or the registry: what a probe found comes in, what to probe goes out.

use std::borrow::Cow;

use portico_machinery::resolve::{
    ApiServiceFacts, BackendFacts, CaBundle, FAILED_DISCOVERY_CHECK, Mode, ServiceIndex, ServiceKey,
    ServiceType, not_found, usable_endpoints,
};
use portico_machinery::route::{Availability, ResolveError, Target};

use super::probe::{ProbeFailure, ProbeStage};

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// `True`
    True,
    /// `False`
    False,
}

impl ConditionStatus {
    /// The wire's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
        }
    }
}

/// What the condition should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its status.
    pub status: ConditionStatus,
    /// Its reason.
    pub reason: Cow<'static, str>,
    /// Its message.
    pub message: String,
}

impl Verdict {
    fn yes(reason: &'static str, message: &str) -> Self {
        Self { status: ConditionStatus::True, reason: reason.into(), message: message.to_owned() }
    }

    fn no(reason: impl Into<Cow<'static, str>>, message: String) -> Self {
        Self { status: ConditionStatus::False, reason: reason.into(), message }
    }

    /// Whether the condition reports the same already.
    #[must_use]
    pub fn is_reported_by(&self, condition: Option<&Availability>) -> bool {
        condition.is_some_and(|c| {
            c.ok == (self.status == ConditionStatus::True)
                && c.reason == self.reason
                && c.message == self.message
        })
    }
}

/// Everything that a probe depends on. Two equal plans would find the same backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// The APIService.
    pub name: std::sync::Arc<str>,
    /// Changes when somebody touches the APIService, so that it is looked at again.
    pub fingerprint: u64,
    /// Where to dial; attempts rotate over them.
    pub targets: Vec<Target>,
    /// `/apis/<group>/<version>`, or `/api/<version>`.
    pub path: String,
    /// What the certificate must be for.
    pub server_name: String,
    /// Its trust roots; absent means the system's.
    pub bundle: Option<CaBundle>,
    /// Any certificate will do.
    pub insecure: bool,
    /// HTTP/2 is offered.
    pub http2: bool,
    /// Whether the probe carries `system:masters`: never to addresses from an annotation.
    pub masters: bool,
    /// The address that messages name: the one target, or the Service when there are several, so that a message does
    /// not change with the address that happened to be tried.
    pub shown: String,
}

impl ProbePlan {
    /// The URL that messages name.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}{}", self.shown, self.path)
    }

    /// Returns true if the APIService has been changed and leads to none of the addresses of an earlier plan.
    #[must_use]
    pub fn is_moved_from(&self, earlier: &Self) -> bool {
        let shares = self.targets.iter().any(|target| earlier.targets.contains(target));
        self.fingerprint != earlier.fingerprint && !shares
    }

    /// Whether both accept the same certificates.
    #[must_use]
    pub fn trusts_like(&self, other: &Self) -> bool {
        (&self.server_name, &self.bundle, self.insecure)
            == (&other.server_name, &other.bundle, other.insecure)
    }
}

/// What to do about an APIService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The condition should be this.
    Settled(Verdict),
    /// Only a probe can decide.
    Probe(ProbePlan),
}

/// The local controller's whole decision (upstream's `APIServiceRegistrationController` for local ones). Absent for an APIService that is not local.
#[must_use]
pub fn decide_local(facts: &ApiServiceFacts) -> Option<Verdict> {
    facts.backend.is_none().then(|| Verdict::yes("Local", "Local APIServices are always available"))
}

/// The remote controller's decision before any probe: R1, R3, R5, R6 and resolver errors settle it, the rest is to be
/// probed. R2 and R4 cannot occur, the facts are always at hand. Absent for a local APIService.
#[must_use]
pub fn decide_remote(facts: &ApiServiceFacts, services: &ServiceIndex, mode: Mode) -> Option<Decision> {
    let backend = facts.backend.as_ref()?;
    Some(match targets(backend, services, mode) {
        Ok(targets) => Decision::Probe(plan(facts, backend, targets)),
        Err(error) => Decision::Settled(Verdict::no(error.reason, error.message)),
    })
}

fn targets(backend: &BackendFacts, services: &ServiceIndex, mode: Mode) -> Result<Vec<Target>, ResolveError> {
    if let Some(urls) = &backend.urls {
        return urls.clone();
    }
    let key = ServiceKey::from(&backend.service);
    let service = services.service(&key).ok_or_else(|| not_found(&backend.service))?;
    if service.kind == ServiceType::ClusterIp {
        usable_endpoints(service, &services.slices(&key), &backend.service)?;
    }
    // What the resolver reports after these tests is upstream's failed probe.
    services
        .resolve(mode, &backend.service)
        .map_err(|error| ResolveError { reason: FAILED_DISCOVERY_CHECK.to_owned(), ..error })
}

fn plan(facts: &ApiServiceFacts, backend: &BackendFacts, targets: Vec<Target>) -> ProbePlan {
    let shown = match targets.as_slice() {
        [one] => one.to_string(),
        _ => format!("{}.{}.svc:{}", backend.service.name, backend.service.namespace, backend.service.port),
    };
    ProbePlan {
        name: facts.name.clone(),
        fingerprint: facts.fingerprint,
        targets,
        path: facts.group_version.root(),
        server_name: backend.server_name.clone(),
        bundle: backend.bundle.clone(),
        insecure: backend.insecure,
        http2: backend.http2,
        masters: backend.urls.is_none(),
        shown,
    }
}

/// R8 and R9: what a probe's end means. A backend that a facade reaches is available even if it is out of our own reach;
/// what it answers us is its own word, and counts.
#[must_use]
pub fn decide_probed(
    plan: &ProbePlan,
    result: &Result<(), ProbeFailure>,
    reached_by_facade: bool,
) -> Verdict {
    match result {
        Err(failure) if failure.stage == ProbeStage::Status || !reached_by_facade => {
            let message = format!("failing or missing response from {}: {failure}", plan.url());
            Verdict::no(FAILED_DISCOVERY_CHECK, message)
        }
        _ => Verdict::yes("Passed", "all checks passed"),
    }
}
