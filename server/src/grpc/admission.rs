//! Explanation of the webhooks and policies that apply to a write, in messages of `portico.routes.v1`.

use std::sync::Arc;

use portico_admission::{AdmissionChain, ExplainedBinding, ExplainedPolicy, ExplainedWebhook, Explanation};
use portico_gostd::time::Time;
use portico_machinery::request_info::RequestInfo;
use portico_proto::routes as pb;
use portico_registry::{OpenCircuit, Registry};

use super::{RpcResult, to_grpc_status};

/// Explainer of the admission of writes.
#[derive(Clone)]
pub(crate) struct AdmissionExplainer {
    pub(crate) chain: Arc<AdmissionChain>,
    pub(crate) registry: Registry,
}

impl AdmissionExplainer {
    /// Returns the webhooks and policies for writes to a path; empty if the path names no served resource.
    pub(crate) async fn explain(&self, subject: &str) -> RpcResult<Explanation> {
        let path = subject.split(['?', '#']).next().unwrap_or_default();
        let Ok(info) = RequestInfo::parse("GET", path, "") else { return Ok(Explanation::default()) };
        if !info.is_resource_request {
            return Ok(Explanation::default());
        }
        let explanation = self.chain.explain(self.registry.objects(), &info).await;
        explanation.map_err(|status| to_grpc_status(*status))
    }
}

pub(super) fn webhook(explained: ExplainedWebhook) -> pb::AdmissionWebhook {
    let kind =
        if explained.mutates { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
    let failed_ms = explained.last_failure.as_ref().map(|failure| failure.at_ms);
    let (health, since) = health(&explained);
    let reason = explained.open_circuits.first().map(|circuit| circuit.reason.clone());
    let reason = reason.or(explained.last_failure.map(|failure| failure.reason)).unwrap_or_default();
    pb::AdmissionWebhook {
        kind: kind.to_owned(),
        configuration: explained.configuration,
        name: explained.name,
        operations: to_strings(explained.operations),
        selective: explained.selective,
        failure_policy: failure_policy(explained.fails_closed),
        health: health.to_owned(),
        since: time(since),
        last_answer: time(explained.answered_ms),
        last_failure: time(failed_ms),
        reason,
        under_way: u32::try_from(explained.active_calls).unwrap_or(u32::MAX),
        open_circuits: explained.open_circuits.into_iter().map(open_circuit).collect(),
        ca_not_after: explained.first_ca_expiry.map(rfc3339).unwrap_or_default(),
    }
}

pub(super) fn policy(explained: ExplainedPolicy) -> pb::AdmissionPolicy {
    let kind = if explained.mutates { "MutatingAdmissionPolicy" } else { "ValidatingAdmissionPolicy" };
    pb::AdmissionPolicy {
        kind: kind.to_owned(),
        name: explained.name,
        operations: to_strings(explained.operations),
        selective: explained.selective,
        failure_policy: failure_policy(explained.fails_closed),
        problems: explained.problems,
        bindings: explained.bindings.into_iter().map(binding).collect(),
    }
}

fn binding(explained: ExplainedBinding) -> pb::AdmissionPolicyBinding {
    pb::AdmissionPolicyBinding {
        name: explained.name,
        operations: to_strings(explained.operations),
        selective: explained.selective,
        actions: to_strings(explained.actions),
        problem: explained.problem.unwrap_or_default(),
    }
}

fn to_strings(names: Vec<&'static str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn failure_policy(fails: bool) -> String {
    if fails { "Fail" } else { "Ignore" }.to_owned()
}

/// Returns the health in one word, and the time since which it applies.
fn health(explained: &ExplainedWebhook) -> (&'static str, Option<u64>) {
    if let Some(circuit) = explained.open_circuits.first() {
        return ("CircuitOpen", Some(circuit.since_ms));
    }
    let failing = explained
        .last_failure
        .as_ref()
        .filter(|failure| explained.answered_ms.is_none_or(|at| at < failure.at_ms));
    match (failing, explained.answered_ms) {
        (Some(failure), _) => ("Failing", Some(failure.since_ms)),
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
