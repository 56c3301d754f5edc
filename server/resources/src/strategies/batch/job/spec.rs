//! Validation of the spec of a job, also inside a CronJob, and the labels that identify pods of a job.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, names};

use super::policies;
use crate::strategies::workload::invalid_or_null;
use portico_validation::Errors;
use portico_validation::checks::{domain_prefixed_path, max_bytes, not_negative};
use portico_validation::counts::all_not_negative;
use portico_validation::pod_spec;

pub(super) const TEMPLATE_LABELS: [&str; 4] = ["spec", "template", "metadata", "labels"];
pub(super) const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const PARALLELISM_MAX: i64 = 100_000;
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const WIDE_MAX: i64 = 10_000;
const MANAGED_BY_MAX: usize = 63;

/// Returns the labels that a job sets on its pods.
pub(super) fn generated_labels<'a>(name: &'a str, uid: &'a str) -> [(&'static str, &'a str); 4] {
    [(CONTROLLER_UID, uid), (JOB_NAME, name), ("controller-uid", uid), ("job-name", name)]
}

/// Checks the generated labels, and that the selector is the generated one.
pub(super) fn validate_generated(new: &Object, errors: &mut Errors) {
    validate_labels_and_selector(new, &generated_labels(new.name(), new.uid()), errors);
}

/// Checks the generated labels and selector of an update. Jobs of older servers lack the labels with a domain.
pub(super) fn validate_generated_update(new: &Object, old: &Object, errors: &mut Errors) {
    let all = generated_labels(new.name(), new.uid());
    let before = old.at(&TEMPLATE_LABELS);
    let had_both = all[..2].iter().all(|(key, _)| before.entry_str(key).is_some());
    validate_labels_and_selector(new, if had_both { &all } else { &all[2..] }, errors);
}

fn validate_labels_and_selector(new: &Object, expected: &[(&str, &str)], errors: &mut Errors) {
    let selector = new.at(&["spec", "selector"]);
    if new.at(&["spec", "manualSelector"]).bool() || !selector.is_present() {
        return;
    }
    let labels = new.at(&TEMPLATE_LABELS);
    for (key, value) in expected {
        let (label, message) = (labels.key(key), format!("must be '{value}'"));
        match labels.entry_str(key) {
            None => errors.push(label.required(&message)),
            Some(found) if found != *value => {
                errors.push(Error { path: label.path(), ..invalid_or_null(&labels, &message) });
            }
            Some(_) => {}
        }
    }
    let selected = portico_machinery::selector::LabelSelector::from_object(&selector);
    if selected.is_ok_and(|selected| !selected.is_some_and(|s| s.matches(expected.iter().copied()))) {
        errors.push(selector.invalid("`selector` not auto-generated"));
    }
}

/// Checks that the name of the last pod of an indexed job is a valid hostname.
pub(super) fn validate_host_names(new: &Object, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    let completions = spec.field("completions").i64().unwrap_or(0);
    if spec.field("completionMode").str() != "Indexed" || completions <= 0 {
        return;
    }
    let pod = format!("{}-{}", new.name(), completions - 1);
    if !names::dns1123_label(&pod).is_empty() {
        let text = format!("will not able to create pod with invalid DNS label: {pod}");
        errors.push(new.at(&["metadata", "name"]).invalid(&text));
    }
}

/// Validates the spec of a job or of a job template.
pub(in super::super) fn validate_spec(spec: &Cursor<'_>, errors: &mut Errors) {
    const COUNTS: [&str; 6] = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
    ];
    all_not_negative(spec, &COUNTS, errors);
    let (per_index, failed) = (spec.field("backoffLimitPerIndex"), spec.field("maxFailedIndexes"));
    not_negative(&failed, errors);
    if failed.is_present() && !per_index.is_present() {
        errors.push(per_index.required("when maxFailedIndexes is specified"));
    }
    validate_managed_by(&spec.field("managedBy"), errors);
    validate_completion_mode(spec, errors);
    policies::validate_failure(spec, errors);
    policies::validate_success(spec, errors);
    validate_pod_replacement(spec, errors);
    let template = spec.field("template");
    pod_spec::validate_template(&template, errors);
    validate_restart_policy(spec, &template.field("spec").field("restartPolicy"), errors);
}

fn validate_managed_by(manager: &Cursor<'_>, errors: &mut Errors) {
    if !manager.is_present() {
        return;
    }
    domain_prefixed_path(manager, errors);
    max_bytes(manager, MANAGED_BY_MAX, errors);
}

fn validate_completion_mode(spec: &Cursor<'_>, errors: &mut Errors) {
    let mode = spec.field("completionMode");
    match mode.opt_str() {
        Some("Indexed") => return validate_indexed(spec, errors),
        None | Some("NonIndexed") => {}
        Some(_) => return errors.push(mode.not_supported(&["NonIndexed", "Indexed"])),
    }
    for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        if spec.field(field).is_present() {
            errors.push(spec.field(field).invalid("requires indexed completion mode"));
        }
    }
}

fn validate_indexed(spec: &Cursor<'_>, errors: &mut Errors) {
    let [completions, parallelism, failed] =
        ["completions", "parallelism", "maxFailedIndexes"].map(|field| spec.field(field));
    let exceeds = |count: &Cursor<'_>, limit: i64| count.i64().is_some_and(|n| n > limit);
    if !completions.is_present() {
        errors.push(completions.required("when completion mode is Indexed"));
    }
    if exceeds(&parallelism, PARALLELISM_MAX) {
        errors.push(parallelism.invalid(&format!(
            "must be less than or equal to {PARALLELISM_MAX} when completion mode is Indexed"
        )));
    }
    if completions.i64().is_some_and(|all| exceeds(&failed, all)) {
        errors.push(failed.invalid("must be less than or equal to completions"));
    }
    if exceeds(&failed, COMPLETIONS_SOFT_MAX) {
        errors.push(failed.invalid(&format!("must be less than or equal to {COMPLETIONS_SOFT_MAX}")));
    }
    if exceeds(&completions, COMPLETIONS_SOFT_MAX) && spec.field("backoffLimitPerIndex").is_present() {
        if !failed.is_present() {
            let text = format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}");
            errors.push(failed.required(&text));
        }
        for count in [parallelism, failed].iter().filter(|count| exceeds(count, WIDE_MAX)) {
            errors.push(count.invalid(&format!(
                "must be less than or equal to {WIDE_MAX} when completions are above {COMPLETIONS_SOFT_MAX} and used with backoff limit per index"
            )));
        }
    }
}

fn validate_pod_replacement(spec: &Cursor<'_>, errors: &mut Errors) {
    let policy = spec.field("podReplacementPolicy");
    let supported: &[&str] = if spec.field("podFailurePolicy").is_present() {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    if policy.is_present() && !supported.contains(&policy.str()) {
        errors.push(policy.not_supported(supported));
    }
}

fn validate_restart_policy(spec: &Cursor<'_>, policy: &Cursor<'_>, errors: &mut Errors) {
    match policy.str() {
        "" | "Always" => errors.push(policy.required("valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if spec.field("podFailurePolicy").is_present() => {
            errors.push(policy.invalid("only \"Never\" is supported when podFailurePolicy is specified"));
        }
        "OnFailure" | "Never" => {}
        _ => errors.push(policy.not_supported(&["OnFailure", "Never"])),
    }
}
