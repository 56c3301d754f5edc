//! Group apps: workload controllers and their revisions.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

pub(crate) use controller_revision::ControllerRevision;
pub(crate) use daemon_set::DaemonSet;
pub(crate) use deployment::Deployment;
pub(crate) use replica_set::ReplicaSet;
pub(crate) use stateful_set::StatefulSet;

use portico_machinery::Cursor;

use super::workload::{ParsedSelector, check_template_labels, require_selector};
use portico_validation::Errors;
use portico_validation::counts::not_greater_than;
use portico_validation::pod_spec;

/// Path of the pod template in all kinds of the group.
const TEMPLATE: [&str; 2] = ["spec", "template"];

/// Validates the selector and the template of Deployments and ReplicaSets, which have the same messages.
fn validate_selector_and_template(spec: &Cursor<'_>, errors: &mut Errors) {
    let (selector, template) = (spec.field("selector"), spec.field("template"));
    match require_selector(&selector, "deployment", errors) {
        ParsedSelector::Invalid => errors.push(selector.invalid("invalid label selector")),
        ParsedSelector::Valid(selected) => {
            check_template_labels(selected.as_ref(), &template, errors);
            pod_spec::validate_template(&template, errors);
            pod_spec::validate_restarting_template(&template, "ReplicaSet", errors);
        }
    }
}

/// Checks that each count in `parts` is at most the count of all pods, and that available pods are at most the ready pods.
fn validate_pod_counts(status: &Cursor<'_>, parts: &[&str], ready_words: &str, errors: &mut Errors) {
    let all = status.field("replicas");
    for part in parts {
        not_greater_than(&status.field(part), &all, "cannot be greater than status.replicas", errors);
    }
    not_greater_than(&status.field("availableReplicas"), &status.field("readyReplicas"), ready_words, errors);
}

/// Cell with the numbers of ready and desired replicas, as `1/3`.
fn ready_cell(object: &portico_machinery::Object) -> portico_machinery::table::Cell {
    let number = |path: &[&str]| object.at(path).i64().unwrap_or(0);
    let (ready, desired) = (number(&["status", "readyReplicas"]), number(&["spec", "replicas"]));
    portico_machinery::table::Cell::text(format!("{ready}/{desired}"))
}
