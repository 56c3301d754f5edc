//! Decides the Available condition of an APIService (upstream's table R1-R9). Pure.
//!
//! The module does not depend on time, sockets or the registry: results of probes are inputs, plans of probes are outputs.

use std::borrow::Cow;

use portico_machinery::resolve::{
    ApiServiceFacts, BackendFacts, CaBundle, FAILED_DISCOVERY_CHECK, ResolveMode, ServiceIndex, ServiceKey,
    ServiceType, check_endpoints, service_not_found,
};
use portico_machinery::route::{Availability, ResolveError, Target};

use super::probe::{ProbeFailure, ProbeStage};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// `True`
    True,
    /// `False`
    False,
}

impl ConditionStatus {
    /// Returns the value of the `status` field.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
        }
    }
}

/// Desired Available condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailabilityVerdict {
    pub status: ConditionStatus,
    pub reason: Cow<'static, str>,
    pub message: String,
}

impl AvailabilityVerdict {
    fn available(reason: &'static str, message: &str) -> Self {
        Self { status: ConditionStatus::True, reason: reason.into(), message: message.to_owned() }
    }

    fn unavailable(reason: impl Into<Cow<'static, str>>, message: String) -> Self {
        Self { status: ConditionStatus::False, reason: reason.into(), message }
    }

    /// Returns true if the condition already has this status, reason and message.
    #[must_use]
    pub fn is_reported_by(&self, condition: Option<&Availability>) -> bool {
        condition.is_some_and(|c| {
            c.ok == (self.status == ConditionStatus::True)
                && c.reason == self.reason
                && c.message == self.message
        })
    }
}

/// All inputs of a probe. Equal plans probe the same backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// Name of the APIService.
    pub name: std::sync::Arc<str>,
    /// Fingerprint of the APIService: any change to it causes a new probe.
    pub fingerprint: u64,
    /// Addresses to connect to; attempts rotate over them.
    pub targets: Vec<Target>,
    /// `/apis/<group>/<version>`, or `/api/<version>`.
    pub path: String,
    /// Name that the certificate must be valid for.
    pub server_name: String,
    /// Trusted CAs; `None` means the system's.
    pub bundle: Option<CaBundle>,
    /// True if any certificate is accepted.
    pub insecure: bool,
    /// True if HTTP/2 is offered.
    pub http2: bool,
    /// True if the probe carries `system:masters`, which is never sent to addresses from an annotation.
    pub as_masters: bool,
    /// Address in messages: the only target, or the Service if there are several, so that a message does not depend on the
    /// address that an attempt used.
    pub display_address: String,
}

impl ProbePlan {
    /// Returns the URL for messages.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}{}", self.display_address, self.path)
    }

    /// Returns true if the APIService has changed since an earlier plan and shares no address with it.
    #[must_use]
    pub fn is_moved_from(&self, earlier: &Self) -> bool {
        let shares = self.targets.iter().any(|target| earlier.targets.contains(target));
        self.fingerprint != earlier.fingerprint && !shares
    }

    /// Returns true if both plans accept the same certificates.
    #[must_use]
    pub fn has_same_trust(&self, other: &Self) -> bool {
        (&self.server_name, &self.bundle, self.insecure)
            == (&other.server_name, &other.bundle, other.insecure)
    }
}

/// Decision of the remote controller before a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The condition is known without a probe.
    Final(AvailabilityVerdict),
    /// A probe decides.
    Probe(ProbePlan),
}

/// Decides for the local controller (upstream's `APIServiceRegistrationController`). Returns `None` if the APIService is remote.
#[must_use]
pub fn decide_local(facts: &ApiServiceFacts) -> Option<AvailabilityVerdict> {
    facts
        .backend
        .is_none()
        .then(|| AvailabilityVerdict::available("Local", "Local APIServices are always available"))
}

/// Decides for the remote controller before a probe: R1, R3, R5, R6 and resolver errors are final, the rest needs a probe.
/// R2 and R4 cannot occur, because the facts are always available. Returns `None` for a local APIService.
#[must_use]
pub fn decide_remote(
    facts: &ApiServiceFacts,
    services: &ServiceIndex,
    mode: ResolveMode,
) -> Option<Decision> {
    let backend = facts.backend.as_ref()?;
    Some(match targets(backend, services, mode) {
        Ok(targets) => Decision::Probe(plan(facts, backend, targets)),
        Err(error) => Decision::Final(AvailabilityVerdict::unavailable(error.reason, error.message)),
    })
}

fn targets(
    backend: &BackendFacts,
    services: &ServiceIndex,
    mode: ResolveMode,
) -> Result<Vec<Target>, ResolveError> {
    if let Some(urls) = &backend.urls {
        return urls.clone();
    }
    let key = ServiceKey::from(&backend.service);
    let service = services.service(&key).ok_or_else(|| service_not_found(&backend.service))?;
    if service.kind == ServiceType::ClusterIp {
        check_endpoints(service, &services.slices(&key), &backend.service)?;
    }
    // Upstream reports the errors that the resolver returns after these checks as failed probes.
    services
        .resolve(mode, &backend.service)
        .map_err(|error| ResolveError { reason: FAILED_DISCOVERY_CHECK.to_owned(), ..error })
}

fn plan(facts: &ApiServiceFacts, backend: &BackendFacts, targets: Vec<Target>) -> ProbePlan {
    let display_address = match targets.as_slice() {
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
        as_masters: backend.urls.is_none(),
        display_address,
    }
}

/// Applies R8 and R9 to the result of a probe. A backend that a facade reaches is available even if this process cannot
/// connect to it, but an error response of the backend itself makes it unavailable.
#[must_use]
pub fn decide_probed(
    plan: &ProbePlan,
    result: &Result<(), ProbeFailure>,
    is_reached_by_facade: bool,
) -> AvailabilityVerdict {
    match result {
        Err(failure) if failure.stage == ProbeStage::Status || !is_reached_by_facade => {
            let message = format!("failing or missing response from {}: {failure}", plan.url());
            AvailabilityVerdict::unavailable(FAILED_DISCOVERY_CHECK, message)
        }
        _ => AvailabilityVerdict::available("Passed", "all checks passed"),
    }
}
