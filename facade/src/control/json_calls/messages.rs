//! The methods' messages as JSON has them: names in camel case, 64-bit numbers and bytes as text.

pub(super) mod history;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portico_proto::apiextensions::finding::Kind;
use portico_proto::apiextensions::{CheckRequest, CheckResponse};
use portico_proto::config::{
    Certificate as CertificateMessage, Facade as FacadeMessage, FacadesResponse, Load as LoadMessage,
    WatchFacadesResponse,
};
use portico_proto::routes::{
    AdmissionPolicy, AdmissionWebhook, ExplainResponse, ListResponse, RouteSummary, Stage as StageMessage,
};
use serde::{Deserialize, Serialize};

/// `ExplainRequest`
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Explain {
    pub(super) subject: String,
}

/// `ListRequest`
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct List {
    pub(super) group: String,
}

/// `FacadesRequest`
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Nothing {}

/// `CheckRequest`
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Check {
    definition: String,
    media_type: String,
}

impl Check {
    pub(super) fn into_request(self) -> Result<CheckRequest, String> {
        let definition = STANDARD.decode(&self.definition).map_err(|error| format!("definition: {error}"))?;
        Ok(CheckRequest { definition, media_type: self.media_type })
    }
}

/// `ExplainResponse`
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explained {
    api_service: String,
    ok: bool,
    stages: Vec<Stage>,
    webhooks: Vec<Webhook>,
    policies: Vec<Policy>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stage {
    stage: String,
    ok: bool,
    reason: String,
    message: String,
    since: String,
    seen_by: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    kind: String,
    configuration: String,
    name: String,
    operations: Vec<String>,
    selective: bool,
    failure_policy: String,
    health: String,
    since: String,
    last_answer: String,
    last_failure: String,
    reason: String,
    under_way: u32,
    open_circuits: Vec<Circuit>,
    ca_not_after: String,
}

#[derive(Serialize)]
struct Circuit {
    target: String,
    since: String,
    reason: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    kind: String,
    name: String,
    operations: Vec<String>,
    selective: bool,
    failure_policy: String,
    problems: Vec<String>,
    bindings: Vec<Binding>,
}

#[derive(Serialize)]
struct Binding {
    name: String,
    operations: Vec<String>,
    selective: bool,
    actions: Vec<String>,
    problem: String,
}

impl From<ExplainResponse> for Explained {
    fn from(m: ExplainResponse) -> Self {
        Self {
            api_service: m.api_service,
            ok: m.ok,
            stages: m.stages.into_iter().map(Stage::from).collect(),
            webhooks: m.webhooks.into_iter().map(Webhook::from).collect(),
            policies: m.policies.into_iter().map(Policy::from).collect(),
        }
    }
}

impl From<StageMessage> for Stage {
    fn from(m: StageMessage) -> Self {
        let StageMessage { stage, ok, reason, message, since, seen_by } = m;
        Self { stage, ok, reason, message, since, seen_by }
    }
}

impl From<AdmissionWebhook> for Webhook {
    fn from(m: AdmissionWebhook) -> Self {
        let circuits = m.open_circuits.into_iter();
        Self {
            kind: m.kind,
            configuration: m.configuration,
            name: m.name,
            operations: m.operations,
            selective: m.selective,
            failure_policy: m.failure_policy,
            health: m.health,
            since: m.since,
            last_answer: m.last_answer,
            last_failure: m.last_failure,
            reason: m.reason,
            under_way: m.under_way,
            open_circuits: circuits
                .map(|c| Circuit { target: c.target, since: c.since, reason: c.reason })
                .collect(),
            ca_not_after: m.ca_not_after,
        }
    }
}

impl From<AdmissionPolicy> for Policy {
    fn from(m: AdmissionPolicy) -> Self {
        let binding = |b: portico_proto::routes::AdmissionPolicyBinding| Binding {
            name: b.name,
            operations: b.operations,
            selective: b.selective,
            actions: b.actions,
            problem: b.problem,
        };
        Self {
            kind: m.kind,
            name: m.name,
            operations: m.operations,
            selective: m.selective,
            failure_policy: m.failure_policy,
            problems: m.problems,
            bindings: m.bindings.into_iter().map(binding).collect(),
        }
    }
}

/// `ListResponse`
#[derive(Serialize)]
pub(super) struct Routes {
    routes: Vec<Route>,
    revision: String,
}

#[derive(Serialize)]
struct Route {
    name: String,
    group: String,
    version: String,
    paths: Vec<String>,
    service: String,
    targets: Vec<String>,
    available: bool,
    reason: String,
    message: String,
    shadows: Vec<String>,
}

impl From<ListResponse> for Routes {
    fn from(m: ListResponse) -> Self {
        Self { routes: m.routes.into_iter().map(Route::from).collect(), revision: m.revision.to_string() }
    }
}

impl From<RouteSummary> for Route {
    fn from(m: RouteSummary) -> Self {
        Self {
            name: m.name,
            group: m.group,
            version: m.version,
            paths: m.paths,
            service: m.service,
            targets: m.targets,
            available: m.available,
            reason: m.reason,
            message: m.message,
            shadows: m.shadows,
        }
    }
}

/// `FacadesResponse`
#[derive(Serialize)]
pub(super) struct Facades {
    facades: Vec<Facade>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Facade {
    name: String,
    address: String,
    connected_since: String,
    acknowledged: Option<Version>,
    behind: String,
    refused: Vec<Refusal>,
    build: String,
    has_others: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    store_id: String,
    epoch: String,
    revision: String,
}

#[derive(Serialize)]
struct Refusal {
    key: String,
    reason: String,
}

impl From<FacadesResponse> for Facades {
    fn from(m: FacadesResponse) -> Self {
        Self { facades: m.facades.into_iter().map(Facade::from).collect() }
    }
}

impl From<FacadeMessage> for Facade {
    fn from(m: FacadeMessage) -> Self {
        let version = |v: portico_proto::config::Version| Version {
            store_id: v.store_id,
            epoch: v.epoch,
            revision: v.revision.to_string(),
        };
        let refusal = |r: portico_proto::config::Refusal| Refusal { key: r.key, reason: r.reason };
        Self {
            name: m.name,
            address: m.address,
            connected_since: m.connected_since,
            acknowledged: m.acknowledged.map(version),
            behind: m.behind.to_string(),
            refused: m.refused.into_iter().map(refusal).collect(),
            build: m.build,
            has_others: m.has_others,
        }
    }
}

/// `WatchFacadesResponse`
#[derive(Serialize)]
pub(super) struct FacadeReport {
    facade: Option<Facade>,
    id: String,
    loads: Vec<Load>,
    failing: Vec<String>,
    certificates: Vec<Certificate>,
    left: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Load {
    time: String,
    seconds: f64,
    requests: String,
    errors: String,
    in_flight: String,
    memory_bytes: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Certificate {
    usage: String,
    subject: String,
    not_before: String,
    not_after: String,
}

impl From<WatchFacadesResponse> for FacadeReport {
    fn from(m: WatchFacadesResponse) -> Self {
        Self {
            facade: m.facade.map(Facade::from),
            id: m.id.to_string(),
            loads: m.loads.into_iter().map(Load::from).collect(),
            failing: m.failing,
            certificates: m.certificates.into_iter().map(Certificate::from).collect(),
            left: m.left,
        }
    }
}

impl From<LoadMessage> for Load {
    fn from(m: LoadMessage) -> Self {
        Self {
            time: m.time.to_string(),
            seconds: m.seconds,
            requests: m.requests.to_string(),
            errors: m.errors.to_string(),
            in_flight: m.in_flight.to_string(),
            memory_bytes: m.memory_bytes.to_string(),
        }
    }
}

impl From<CertificateMessage> for Certificate {
    fn from(m: CertificateMessage) -> Self {
        let CertificateMessage { usage, subject, not_before, not_after } = m;
        Self { usage, subject, not_before, not_after }
    }
}

/// `CheckResponse`
#[derive(Serialize)]
pub(super) struct Checked {
    name: String,
    installed: bool,
    findings: Vec<Finding>,
    objects: String,
    hit: String,
}

#[derive(Serialize)]
struct Finding {
    kind: &'static str,
    version: String,
    object: String,
    field: String,
    text: String,
}

impl From<CheckResponse> for Checked {
    fn from(m: CheckResponse) -> Self {
        let finding = |f: portico_proto::apiextensions::Finding| Finding {
            kind: Kind::try_from(f.kind).unwrap_or(Kind::Unspecified).as_str_name(),
            version: f.version,
            object: f.object,
            field: f.field,
            text: f.text,
        };
        Self {
            name: m.name,
            installed: m.installed,
            findings: m.findings.into_iter().map(finding).collect(),
            objects: m.objects.to_string(),
            hit: m.hit.to_string(),
        }
    }
}
