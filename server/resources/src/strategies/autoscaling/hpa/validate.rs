//! Validation of an autoscaler: scale target, replica limits, metrics and behavior.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, GroupVersion, names};

use portico_validation::Errors;
use portico_validation::checks::{matches_rule, one_of, required};
use portico_validation::pod_spec;
use portico_validation::values;

/// Sources, in the order of validation.
const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const WINDOW_MAX: i64 = 3600;
const PERIOD_MAX: i64 = 1800;

pub(super) fn validate_spec(spec: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    let (least, most) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    let had_none = old.is_some_and(|old| old.field("minReplicas").i64() == Some(0));
    let bound = i64::from(!had_none);
    if least.i64().is_some_and(|n| n < bound) {
        errors.push(least.invalid(&format!("must be greater than or equal to {bound}")));
    }
    let limit = most.i64().unwrap_or(0);
    match limit {
        0 => errors.push(most.required("must be set and greater than 0")),
        ..0 => errors.push(most.invalid("must be greater than or equal to 1")),
        _ => {}
    }
    if least.i64().is_some_and(|n| limit < n) {
        let text = "must be greater than or equal to `minReplicas`";
        errors.push(Error::invalid(&most.path(), limit, text));
    }
    validate_scale_target(&spec.field("scaleTargetRef"), old, errors);
    let list = spec.field("metrics");
    let skip_versions =
        old.is_some_and(|old| old.field("metrics").items().any(|metric| has_invalid_version(&metric)));
    for item in list.items() {
        validate_metric(&item, skip_versions, errors);
    }
    let scales_from_zero = |m: Cursor<'_>| matches!(m.field("type").str(), "Object" | "External");
    if least.i64() == Some(0) && !list.items().any(scales_from_zero) {
        let text = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(list.forbidden(text));
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = spec.field("behavior").field(direction);
        if rules.is_present() {
            validate_scaling_rules(&rules, errors);
        }
    }
}

fn validate_scale_target(target: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    validate_reference(target, errors);
    let before = old.map(|old| old.field("scaleTargetRef"));
    let (version, kind) = (target.field("apiVersion"), target.field("kind"));
    let is_unchanged = before.is_some_and(|before| {
        before.field("apiVersion").str() == version.str() && before.field("kind").str() == kind.str()
    });
    if is_unchanged {
        return;
    }
    let parsed = self::validate_version(&version, errors);
    if parsed.is_some_and(|found| found.group.is_empty()) && kind.str() != "ReplicationController" {
        errors.push(version.invalid("apiVersion must specify API group"));
    }
}

/// Parses a group and version. Adds an error if it is invalid.
fn validate_version(at: &Cursor<'_>, errors: &mut Errors) -> Option<GroupVersion> {
    let parsed = at.str().parse().ok();
    if parsed.is_none() {
        errors.push(at.invalid(&format!("unexpected GroupVersion string: {}", at.str())));
    }
    parsed
}

fn validate_reference(target: &Cursor<'_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        required(&target.field(field), names::path_segment, errors);
    }
}

/// True if the object of a metric has an invalid version. If the old spec has such a metric, versions are not validated.
fn has_invalid_version(metric: &Cursor<'_>) -> bool {
    let version = metric.field("object").field("describedObject").field("apiVersion");
    metric.field("type").str() == "Object" && version.str().parse::<GroupVersion>().is_err()
}

/// Validates a metric. `skip_versions`: versions of objects are not validated.
fn validate_metric(metric: &Cursor<'_>, skip_versions: bool, errors: &mut Errors) {
    let kind = metric.field("type");
    if kind.str().is_empty() {
        errors.push(kind.required("must specify a metric source type"));
    }
    if !TYPES.contains(&kind.str()) {
        errors.push(kind.not_supported(&TYPES));
    }
    let present: Vec<_> = SOURCES.iter().filter(|(field, _)| metric.field(field).is_present()).collect();
    let source = SOURCES.iter().find(|(_, name)| *name == kind.str());
    if let Some((field, _)) = present.first() {
        validate_source(field, &metric.field(field), skip_versions, errors);
    }
    match source {
        Some((source_field, _)) if !metric.field(source_field).is_present() => {
            let text = "must populate information for the given metric source";
            errors.push(metric.field(source_field).required(text));
        }
        Some(_) => {}
        // Second error of upstream: no source matches the type.
        None => errors.push(kind.not_supported(&TYPES)),
    }
    if present.len() > 1 {
        let source_field = source.map(|(field, _)| *field);
        for (other, _) in present.iter().filter(|(field, _)| Some(*field) != source_field) {
            errors.push(metric.field(other).forbidden("must populate the given metric source only"));
        }
    }
}

fn validate_source(kind: &str, source: &Cursor<'_>, skip_versions: bool, errors: &mut Errors) {
    let target = source.field("target");
    let has = |field: &str| target.field(field).is_present();
    match kind {
        "object" => {
            validate_reference(&source.field("describedObject"), errors);
            if !skip_versions {
                validate_version(&source.field("describedObject").field("apiVersion"), errors);
            }
            validate_identifier(&source.field("metric"), errors);
            validate_metric_target(&target, errors);
            if !has("value") && !has("averageValue") {
                let text = "must set either a target value or averageValue";
                errors.push(target.field("averageValue").required(text));
            }
        }
        "external" => {
            validate_identifier(&source.field("metric"), errors);
            validate_metric_target(&target, errors);
            match (has("value"), has("averageValue")) {
                (false, false) => errors.push(
                    target
                        .field("averageValue")
                        .required("must set either a target value for metric or a per-pod target"),
                ),
                (true, true) => errors.push(
                    target
                        .field("value")
                        .forbidden("may not set both a target value for metric and a per-pod target"),
                ),
                _ => {}
            }
        }
        "pods" => {
            validate_identifier(&source.field("metric"), errors);
            validate_metric_target(&target, errors);
            if !has("averageValue") {
                let text = "must specify a positive target averageValue";
                errors.push(target.field("averageValue").required(text));
            }
        }
        "containerResource" => validate_container_resource(source, errors),
        _ => validate_resource(source, errors),
    }
}

fn validate_container_resource(source: &Cursor<'_>, errors: &mut Errors) {
    let (name, container) = (source.field("name"), source.field("container"));
    if name.str().is_empty() {
        errors.push(name.required("must specify a resource name"));
    } else {
        pod_spec::container_resource_name(name.str(), &name.path(), errors);
    }
    if container.str().is_empty() {
        errors.push(container.required("must specify a container"));
    } else {
        matches_rule(&container, values::label, errors);
    }
    validate_resource_target(source, errors);
}

fn validate_resource(source: &Cursor<'_>, errors: &mut Errors) {
    if source.field("name").str().is_empty() {
        errors.push(source.field("name").required("must specify a resource name"));
    }
    validate_resource_target(source, errors);
}

fn validate_resource_target(source: &Cursor<'_>, errors: &mut Errors) {
    let target = source.field("target");
    validate_metric_target(&target, errors);
    let (share, value) = (target.field("averageUtilization"), target.field("averageValue"));
    match (share.is_present(), value.is_present()) {
        (false, false) => {
            errors.push(share.required("must set either a target raw value or a target utilization"));
        }
        (true, true) => {
            errors.push(value.forbidden("may not set both a target raw value and a target utilization"));
        }
        _ => {}
    }
}

fn validate_identifier(metric: &Cursor<'_>, errors: &mut Errors) {
    let name = metric.field("name");
    if name.str().is_empty() {
        errors.push(name.required("must specify a metric name"));
    } else {
        matches_rule(&name, names::path_segment, errors);
    }
}

fn validate_metric_target(target: &Cursor<'_>, errors: &mut Errors) {
    let kind = target.field("type");
    if kind.str().is_empty() {
        errors.push(kind.required("must specify a metric target type"));
    }
    if !matches!(kind.str(), "Utilization" | "Value" | "AverageValue") {
        errors.push(kind.invalid("must be either Utilization, Value, or AverageValue"));
    }
    for field in ["value", "averageValue"] {
        let amount = target.field(field);
        if amount.is_present() && !is_positive(&amount) {
            errors.push(amount.invalid("must be positive"));
        }
    }
    let share = target.field("averageUtilization");
    if share.i64().is_some_and(|n| n < 1) {
        errors.push(share.invalid("must be greater than 0"));
    }
}

/// True if a canonical quantity is greater than zero.
fn is_positive(amount: &Cursor<'_>) -> bool {
    !matches!(amount.str(), "" | "0") && !amount.str().starts_with('-')
}

fn validate_scaling_rules(rules: &Cursor<'_>, errors: &mut Errors) {
    let window = rules.field("stabilizationWindowSeconds");
    match window.i64() {
        Some(..0) => errors.push(window.invalid("must be greater than or equal to zero")),
        Some(seconds) if seconds > WINDOW_MAX => {
            errors.push(window.invalid(&format!("must be less than or equal to {WINDOW_MAX}")));
        }
        _ => {}
    }
    one_of(&rules.field("selectPolicy"), &["Disabled", "Max", "Min"], errors);
    let policies = rules.field("policies");
    if policies.is_empty() {
        errors.push(policies.required("must specify at least one Policy"));
    }
    for policy in policies.items() {
        validate_scaling_policy(&policy, errors);
    }
    let tolerance = rules.field("tolerance");
    if tolerance.str().starts_with('-') {
        errors.push(tolerance.invalid("must be greater than or equal to 0"));
    }
}

fn validate_scaling_policy(policy: &Cursor<'_>, errors: &mut Errors) {
    let (kind, period) = (policy.field("type"), policy.field("periodSeconds"));
    if !matches!(kind.str(), "Percent" | "Pods") {
        errors.push(kind.not_supported(&["Percent", "Pods"]));
    }
    for number in [&policy.field("value"), &period] {
        let value = number.i64().unwrap_or(0);
        if value <= 0 {
            errors.push(Error::invalid(&number.path(), value, "must be greater than zero"));
        }
    }
    if period.i64().is_some_and(|seconds| seconds > PERIOD_MAX) {
        errors.push(period.invalid(&format!("must be less than or equal to {PERIOD_MAX}")));
    }
}
