//! Metrics of PodSecurity (k8s.io/pod-security-admission/metrics).

use std::borrow::Cow;

use portico_kit::metrics::{Desc, Registry};
use portico_registry::{Attributes, Operation};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::policy::{Level, Standard};

/// Minor version of the implemented checks. Policies with a later version count as `future`.
const MINOR: u32 = 36;

type Label = (&'static str, Cow<'static, str>);

/// Purpose of an evaluation.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    Enforce,
    Audit,
    Warn,
}

/// Metrics of PodSecurity.
pub(super) struct PodSecurityMetrics {
    evaluations: Family<[Label; 7], Counter>,
    exemptions: Family<[Label; 3], Counter>,
    errors: Family<[Label; 4], Counter>,
}

impl PodSecurityMetrics {
    /// Registers the metrics. As in upstream, the most frequent label combinations exist from the start.
    pub(super) fn new(registry: &Registry) -> Self {
        let metrics = Self {
            evaluations: registry.counter_vec(Desc::counter(
                "pod_security_evaluations_total",
                &[
                    "decision",
                    "mode",
                    "policy_level",
                    "policy_version",
                    "request_operation",
                    "resource",
                    "subresource",
                ],
                "[ALPHA] Number of policy evaluations that occurred, not counting ignored or \
                 exempt requests.",
            )),
            exemptions: registry.counter_vec(Desc::counter(
                "pod_security_exemptions_total",
                &["request_operation", "resource", "subresource"],
                "[ALPHA] Number of exempt requests, not counting ignored or out of scope \
                 requests.",
            )),
            errors: registry.counter_vec(Desc::counter(
                "pod_security_errors_total",
                &["fatal", "request_operation", "resource", "subresource"],
                "[ALPHA] Number of errors preventing normal evaluation. Non-fatal errors may \
                 result in the latest restricted profile being used for evaluation.",
            )),
        };
        let privileged = Standard { level: Level::Privileged, version: None };
        for operation in ["create", "update"] {
            let pod = request(operation, "pod", "");
            drop(metrics.evaluations.get_or_create(&evaluation(
                true,
                privileged,
                Mode::Enforce,
                pod.clone(),
            )));
            drop(metrics.exemptions.get_or_create(&pod));
            drop(metrics.exemptions.get_or_create(&request(operation, "controller", "")));
        }
        metrics
    }

    /// Counts an evaluation of a policy for a pod or a template.
    pub(super) fn count_evaluation(
        &self,
        allowed: bool,
        standard: Standard,
        mode: Mode,
        attributes: &Attributes<'_>,
    ) {
        self.evaluations.get_or_create(&evaluation(allowed, standard, mode, request_of(attributes))).inc();
    }

    /// Counts a request that is exempt.
    pub(super) fn count_exemption(&self, attributes: &Attributes<'_>) {
        self.exemptions.get_or_create(&request_of(attributes)).inc();
    }

    /// Counts an error that prevented an evaluation (`fatal`), or made it use another policy than the labels require.
    pub(super) fn count_error(&self, fatal: bool, attributes: &Attributes<'_>) {
        let fatal = ("fatal", Cow::from(if fatal { "true" } else { "false" }));
        let [operation, resource, subresource] = request_of(attributes);
        self.errors.get_or_create(&[fatal, operation, resource, subresource]).inc();
    }
}

fn evaluation(allowed: bool, standard: Standard, mode: Mode, request: [Label; 3]) -> [Label; 7] {
    let version = match standard.version {
        Some(minor) if standard.level != Level::Privileged && minor <= MINOR => {
            Cow::from(format!("v1.{minor}"))
        }
        Some(_) if standard.level != Level::Privileged => Cow::from("future"),
        _ => Cow::from("latest"),
    };
    let mode = match mode {
        Mode::Enforce => "enforce",
        Mode::Audit => "audit",
        Mode::Warn => "warn",
    };
    let [operation, resource, subresource] = request;
    [
        ("decision", Cow::from(if allowed { "allow" } else { "deny" })),
        ("policy_level", Cow::from(standard.level.name())),
        ("policy_version", version),
        ("mode", Cow::from(mode)),
        operation,
        resource,
        subresource,
    ]
}

fn request_of(attributes: &Attributes<'_>) -> [Label; 3] {
    let operation = if attributes.operation == Operation::Create { "create" } else { "update" };
    let resource = match attributes.served_resource.resource.resource.as_str() {
        "pods" => "pod",
        _ => "controller",
    };
    // Only the subresources that the plugin handles.
    let subresource = match attributes.subresource() {
        "ephemeralcontainers" => "ephemeralcontainers",
        "resize" => "resize",
        _ => "",
    };
    request(operation, resource, subresource)
}

fn request(operation: &'static str, resource: &'static str, subresource: &'static str) -> [Label; 3] {
    [
        ("request_operation", Cow::from(operation)),
        ("resource", Cow::from(resource)),
        ("subresource", Cow::from(subresource)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_as_upstream_names_them() {
        for (level, version, expected) in [
            (Level::Baseline, None, "latest"),
            (Level::Baseline, Some(24), "v1.24"),
            (Level::Restricted, Some(36), "v1.36"),
            (Level::Restricted, Some(37), "future"),
            (Level::Privileged, Some(24), "latest"),
        ] {
            let labels =
                evaluation(false, Standard { level, version }, Mode::Warn, request("create", "pod", ""));
            assert_eq!(labels[2], ("policy_version", Cow::from(expected)), "{level:?} {version:?}");
        }
    }
}
