//! PodSecurity: enforces the pod security standards that the labels of a namespace require on pods, and warns
//! about pod templates.
//!
//! Upstream rules: k8s.io/pod-security-admission. Without configuration, namespaces without labels are privileged and
//! nothing is exempt.

mod checks;
mod configuration;
mod containers;
mod metrics;
mod pods;
mod policy;
mod violation;
mod volumes;

use std::collections::{BTreeMap, HashSet};

use portico_kit::metrics::Registry;
use portico_machinery::{Cursor, GroupResource, Object, Status, aggregate, field};

use crate::listing::list_all;
use crate::plugin::{Plugin, ResourcePattern, ValidationFuture, ValidationRequest};
use checks::violations;
pub(crate) use configuration::PodSecurityConfiguration;
use metrics::{Mode, PodSecurityMetrics};
use policy::{Level, Policy, Standard};
use portico_registry::Objects;
use portico_registry::Result;
use violation::Pod;

/// Existing pods that PodSecurity evaluates when a namespace becomes stricter.
///
/// Limit (Admission and quota): the warning says that not all pods were evaluated.
const MAX_PODS: usize = 3_000;

/// Prefix of the keys of audit annotations.
const AUDIT_PREFIX: &str = "pod-security.kubernetes.io/";

/// PodSecurity plugin.
pub(super) struct PodSecurity {
    configuration: PodSecurityConfiguration,
    metrics: PodSecurityMetrics,
}

impl Plugin for PodSecurity {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[
            ("", "namespaces", ""),
            ("", "pods", ""),
            ("", "pods", "ephemeralcontainers"),
            ("", "pods", "resize"),
            ("", "podtemplates", ""),
            ("", "replicationcontrollers", ""),
            ("apps", "replicasets", ""),
            ("apps", "deployments", ""),
            ("apps", "statefulsets", ""),
            ("apps", "daemonsets", ""),
            ("batch", "jobs", ""),
            ("batch", "cronjobs", ""),
        ]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> ValidationFuture<'a> {
        Box::pin(async move {
            match request.attributes.served_resource.resource.resource.as_str() {
                "namespaces" => self.validate_namespace(objects, request).await,
                "pods" => self.validate_pod(objects, request).await,
                resource => self.validate_template(objects, request, template_path(resource)).await,
            }
        })
    }
}

impl PodSecurity {
    pub(super) fn new(configuration: &PodSecurityConfiguration, metrics: &Registry) -> Self {
        Self { configuration: configuration.clone(), metrics: PodSecurityMetrics::new(metrics) }
    }

    /// Returns the policy that a namespace's labels define on top of the default, and the errors of invalid labels.
    fn policy(&self, namespace: &Object) -> (Policy, Vec<field::Error>) {
        Policy::read(namespace, self.configuration.default)
    }

    /// Checks that the labels of a namespace are valid, and warns about existing pods that violate a stricter policy.
    async fn validate_namespace(
        &self,
        objects: &Objects,
        request: ValidationRequest<'_>,
    ) -> Result<Vec<String>> {
        let (new, old) = (request.new, request.old);
        let (policy, errors) = self.policy(new);
        let (before, errors_before) = match old {
            Some(old) => self.policy(old),
            None => (policy, Vec::new()),
        };
        if !errors.is_empty() && errors != errors_before {
            let kind = request.attributes.served_resource.stored_info().group_kind();
            return Err(Box::new(Status::invalid(&kind, new.name(), &errors)));
        }
        let (new_standard, old_standard) = (policy.enforce, before.enforce);
        let is_relaxed =
            new_standard.version == old_standard.version && new_standard.level <= old_standard.level;
        let is_stricter =
            new_standard != old_standard && new_standard.level != Level::Privileged && !is_relaxed;
        let is_exempt = self.configuration.exempts_namespace(new.name());
        if is_exempt && (old.is_none() || is_stricter) {
            return Ok(self.exempt_namespace_warning(new, &policy));
        }
        if is_exempt || old.is_none() || !is_stricter {
            return Ok(Vec::new());
        }
        let pods = list_all(objects, Some(new.name()), &GroupResource::new("", "pods")).await?.objects;
        let examined: Vec<&Object> =
            pods.iter().filter(|pod| !self.is_class_exempt(&pod.at(&["spec"]))).collect();
        Ok(existing_pod_warnings(new.name(), new_standard, &examined))
    }

    /// Returns the warning for labels of a namespace that is exempt.
    fn exempt_namespace_warning(&self, namespace: &Object, policy: &Policy) -> Vec<String> {
        if policy.is_privileged() || policy.is_equivalent(&self.configuration.default) {
            return Vec::new();
        }
        let (name, summary) = (namespace.name(), policy.summary(namespace));
        vec![format!(
            "namespace {name:?} is exempt from Pod Security, and the policy ({summary}) will be ignored"
        )]
    }

    async fn validate_pod(&self, objects: &Objects, request: ValidationRequest<'_>) -> Result<Vec<String>> {
        if self.is_exempt(&request) {
            return Ok(Vec::new());
        }
        let (policy, errors) = self.policy_of(objects, &request).await?;
        let enforce = policy.enforce;
        if errors.is_empty() && policy.is_privileged() {
            annotate(&request, "enforce-policy", enforce.to_string());
            self.metrics.count_evaluation(true, enforce, Mode::Enforce, &request.attributes);
            return Ok(Vec::new());
        }
        let spec = request.new.at(&["spec"]);
        if request.old.is_some_and(|old| !is_significant(&spec, &old.at(&["spec"]))) {
            return Ok(Vec::new());
        }
        let pod = Pod::of(request.new.cursor());
        if self.has_exempt_class(&request, &spec) {
            return Ok(Vec::new());
        }
        self.annotate_errors(&request, &errors);
        annotate(&request, "enforce-policy", enforce.to_string());
        let forbidden = violations(enforce, &pod);
        self.metrics.count_evaluation(forbidden.is_empty(), enforce, Mode::Enforce, &request.attributes);
        self.annotate_violations(&request, policy.audit, &pod);
        if !forbidden.is_empty() {
            let message = format!("violates PodSecurity \"{enforce}\": {}", checks::join_details(&forbidden));
            return Err(request.forbidden(&message));
        }
        Ok(self.violation_warnings(&request, policy.warn, &pod))
    }

    async fn validate_template(
        &self,
        objects: &Objects,
        request: ValidationRequest<'_>,
        path: &[&str],
    ) -> Result<Vec<String>> {
        if self.is_exempt(&request) {
            return Ok(Vec::new());
        }
        // Templates are never refused.
        let (policy, errors) = match self.policy_of(objects, &request).await {
            Ok(read) => read,
            Err(status) => {
                annotate(&request, "error", status.message);
                return Ok(Vec::new());
            }
        };
        let has_no_modes = policy.warn.level == Level::Privileged && policy.audit.level == Level::Privileged;
        let template = request.new.at(path);
        if errors.is_empty() && has_no_modes || !template.is_present() {
            return Ok(Vec::new());
        }
        if self.has_exempt_class(&request, &template.field("spec")) {
            return Ok(Vec::new());
        }
        self.annotate_errors(&request, &errors);
        let pod = Pod::of(template);
        self.annotate_violations(&request, policy.audit, &pod);
        Ok(self.violation_warnings(&request, policy.warn, &pod))
    }

    /// True if the namespace or the user of a request is exempt.
    fn is_exempt(&self, request: &ValidationRequest<'_>) -> bool {
        let attributes = &request.attributes;
        let exempted_by = if self.configuration.exempts_namespace(attributes.namespace) {
            "namespace"
        } else if self.configuration.exempts_user(&attributes.context.user.name) {
            "user"
        } else {
            return false;
        };
        self.record_exemption(request, exempted_by);
        true
    }

    /// True if the runtime class of a pod is exempt; records the exemption.
    fn has_exempt_class(&self, request: &ValidationRequest<'_>, spec: &Cursor<'_>) -> bool {
        let exempts = self.is_class_exempt(spec);
        if exempts {
            self.record_exemption(request, "runtimeClass");
        }
        exempts
    }

    fn record_exemption(&self, request: &ValidationRequest<'_>, exemption: &str) {
        annotate(request, "exempt", exemption.to_owned());
        self.metrics.count_exemption(&request.attributes);
    }

    fn is_class_exempt(&self, spec: &Cursor<'_>) -> bool {
        self.configuration.exempts_runtime_class(spec.field("runtimeClassName").str())
    }

    /// Returns the policy of the namespace of a request.
    async fn policy_of(
        &self,
        objects: &Objects,
        request: &ValidationRequest<'_>,
    ) -> Result<(Policy, Vec<field::Error>)> {
        let name = request.attributes.namespace;
        let found = objects.object_of("", "namespaces", "", name).await.and_then(|found| {
            found.ok_or_else(|| Box::new(Status::internal(format!("failed to lookup namespace {name:?}"))))
        });
        found
            .map(|namespace| self.policy(&namespace))
            .inspect_err(|_| self.metrics.count_error(true, &request.attributes))
    }

    fn annotate_errors(&self, request: &ValidationRequest<'_>, errors: &[field::Error]) {
        if !errors.is_empty() {
            annotate(request, "error", format!("Failed to parse policy: {}", aggregate(errors)));
            self.metrics.count_error(false, &request.attributes);
        }
    }

    fn annotate_violations(&self, request: &ValidationRequest<'_>, standard: Standard, pod: &Pod<'_>) {
        if let Some(text) = warning(standard, pod) {
            annotate(request, "audit-violations", text);
            self.metrics.count_evaluation(false, standard, Mode::Audit, &request.attributes);
        }
    }

    fn violation_warnings(
        &self,
        request: &ValidationRequest<'_>,
        standard: Standard,
        pod: &Pod<'_>,
    ) -> Vec<String> {
        let warning = warning(standard, pod);
        if warning.is_some() {
            self.metrics.count_evaluation(false, standard, Mode::Warn, &request.attributes);
        }
        warning.into_iter().collect()
    }
}

/// Returns the path of the pod template in a kind.
fn template_path(resource: &str) -> &'static [&'static str] {
    match resource {
        "podtemplates" => &["template"],
        "cronjobs" => &["spec", "jobTemplate", "spec", "template"],
        _ => &["spec", "template"],
    }
}

/// Adds an audit annotation.
fn annotate(request: &ValidationRequest<'_>, key: &str, value: String) {
    request.attributes.context.annotations.note(format!("{AUDIT_PREFIX}{key}"), value);
}

fn warning(standard: Standard, pod: &Pod<'_>) -> Option<String> {
    let found = violations(standard, pod);
    let message = || format!("would violate PodSecurity \"{standard}\": {}", checks::join_details(&found));
    (!found.is_empty()).then(message)
}

/// True if a change of a pod's spec requires an evaluation: containers were added or removed, or an image has changed.
fn is_significant(new: &Cursor<'_>, old: &Cursor<'_>) -> bool {
    let before: BTreeMap<_, _> = images(old, "ephemeralContainers").into_iter().collect();
    let mut ephemeral = images(new, "ephemeralContainers").into_iter();
    ["containers", "initContainers"].iter().any(|list| images(new, list) != images(old, list))
        || ephemeral.any(|(name, image)| before.get(&name) != Some(&image))
}

/// Returns names and images of the containers in a list.
fn images(spec: &Cursor<'_>, list: &str) -> Vec<(String, String)> {
    let text = |container: &Cursor<'_>, field: &str| container.field(field).str().to_owned();
    spec.field(list).items().map(|c| (text(&c, "name"), text(&c, "image"))).collect()
}

/// Returns the warnings about existing pods of a namespace that becomes stricter: one line for each kind of violation.
fn existing_pod_warnings(namespace: &str, standard: Standard, pods: &[&Object]) -> Vec<String> {
    let first = one_per_controller(pods);
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in first.iter().take(MAX_PODS) {
        let violations = violations(standard, &Pod::of(pod.cursor()));
        if !violations.is_empty() {
            found.entry(checks::join_reasons(&violations)).or_default().push(pod.name());
        }
    }
    let mut warnings = Vec::new();
    if first.len() > MAX_PODS {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_PODS} of {} existing pods",
            first.len()
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{standard}\""
        ));
    }
    let mut lines: Vec<String> = found
        .into_iter()
        .map(|(warning, names)| {
            let name = names.iter().min().copied().unwrap_or_default();
            match names.len() {
                1 => format!("{name}: {warning}"),
                2 => format!("{name} (and 1 other pod): {warning}"),
                all => format!("{name} (and {} other pods): {warning}", all - 1),
            }
        })
        .collect();
    lines.sort_unstable();
    warnings.extend(lines);
    warnings
}

/// Sorts pods so that one pod of each controller comes first.
fn one_per_controller<'a>(pods: &[&'a Object]) -> Vec<&'a Object> {
    let mut seen = HashSet::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for pod in pods.iter().copied() {
        let owners = pod.owner_references();
        let controller = owners.iter().find(|owner| owner.controller == Some(true));
        match controller {
            Some(controller) if !seen.insert(controller.uid.clone()) => rest.push(pod),
            _ => first.push(pod),
        }
    }
    first.append(&mut rest);
    first
}
