//! Explanation of the webhooks and policies that apply to a write, in messages of `portico.routes.v1`.

use std::sync::Arc;

use portico_admission::{AdmissionChain, Explained, ExplainedBinding, ExplainedPolicy, Explanation};
use portico_gostd::time::Time;
use portico_machinery::request_info::RequestInfo;
use portico_proto::routes as pb;
use portico_registry::{OpenCircuit, Registry};

use super::{RpcResult, refused};

/// Explainer of the admission of writes.
#[derive(Clone)]
pub(crate) struct AdmissionExplainer {
    pub(crate) chain: Arc<AdmissionChain>,
    pub(crate) registry: Registry,
}

impl AdmissionExplainer {
    /// Returns the webhooks and policies for writes to a path; empty if the path names no served resource.
    pub(crate) async fn met_by(&self, subject: &str) -> RpcResult<Explanation> {
        let path = subject.split(['?', '#']).next().unwrap_or_default();
        let Ok(info) = RequestInfo::parse("GET", path, "") else { return Ok(Explanation::default()) };
        if !info.is_resource_request {
            return Ok(Explanation::default());
        }
        let met = self.chain.explain(self.registry.objects(), &info).await;
        met.map_err(|status| refused(*status))
    }
}

pub(super) fn webhook(met: Explained) -> pb::AdmissionWebhook {
    let kind = if met.mutates { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
    let failed_ms = met.trouble.as_ref().map(|trouble| trouble.at_ms);
    let (health, since) = health(&met);
    let reason = met.open.first().map(|circuit| circuit.reason.clone());
    let reason = reason.or(met.trouble.map(|trouble| trouble.reason)).unwrap_or_default();
    pb::AdmissionWebhook {
        kind: kind.to_owned(),
        configuration: met.configuration,
        name: met.name,
        operations: owned(met.operations),
        selective: met.selective,
        failure_policy: failure_policy(met.fails),
        health: health.to_owned(),
        since: time(since),
        last_answer: time(met.answered_ms),
        last_failure: time(failed_ms),
        reason,
        under_way: u32::try_from(met.under_way).unwrap_or(u32::MAX),
        open_circuits: met.open.into_iter().map(open_circuit).collect(),
        ca_not_after: met.first_ca_end.map(rfc3339).unwrap_or_default(),
    }
}

pub(super) fn policy(met: ExplainedPolicy) -> pb::AdmissionPolicy {
    let kind = if met.mutates { "MutatingAdmissionPolicy" } else { "ValidatingAdmissionPolicy" };
    pb::AdmissionPolicy {
        kind: kind.to_owned(),
        name: met.name,
        operations: owned(met.operations),
        selective: met.selective,
        failure_policy: failure_policy(met.fails),
        problems: met.problems,
        bindings: met.bindings.into_iter().map(binding).collect(),
    }
}

fn binding(met: ExplainedBinding) -> pb::AdmissionPolicyBinding {
    pb::AdmissionPolicyBinding {
        name: met.name,
        operations: owned(met.operations),
        selective: met.selective,
        actions: owned(met.actions),
        problem: met.problem.unwrap_or_default(),
    }
}

fn owned(names: Vec<&'static str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn failure_policy(fails: bool) -> String {
    if fails { "Fail" } else { "Ignore" }.to_owned()
}

/// Returns the health in one word, and the time since which it applies.
fn health(met: &Explained) -> (&'static str, Option<u64>) {
    if let Some(circuit) = met.open.first() {
        return ("CircuitOpen", Some(circuit.since_ms));
    }
    let failing = met.trouble.as_ref().filter(|trouble| met.answered_ms.is_none_or(|at| at < trouble.at_ms));
    match (failing, met.answered_ms) {
        (Some(trouble), _) => ("Failing", Some(trouble.since_ms)),
        (None, Some(at)) => ("Answering", Some(at)),
        (None, None) => ("NeverAsked", None),
    }
}

fn open_circuit(circuit: OpenCircuit) -> pb::OpenCircuit {
    pb::OpenCircuit { target: circuit.target, since: time(Some(circuit.since_ms)), reason: circuit.reason }
}

fn time(ms: Option<u64>) -> String {
    ms.and_then(|ms| i64::try_from(ms / 1000).ok()).map(rfc3339).unwrap_or_default()
}

fn rfc3339(seconds: i64) -> String {
    Time::unix(seconds, 0).rfc3339().unwrap_or_default()
}
