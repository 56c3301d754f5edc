//! Group apps: what keeps a number of pods running, and the history of it.

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

use super::workload::{Selects, must_match, required_selector};
use portico_validation::Errors;
use portico_validation::counts::no_more_than;
use portico_validation::pod_spec;

/// Where the template of each kind stands.
const TEMPLATE: [&str; 2] = ["spec", "template"];

/// The selector and the template of Deployments and ReplicaSets, which share their words.
fn selected_template(spec: &Cursor<'_>, errors: &mut Errors) {
    let (selector, template) = (spec.field("selector"), spec.field("template"));
    match required_selector(&selector, "deployment", errors) {
        Selects::Unusable => errors.push(selector.invalid("invalid label selector")),
        Selects::Labels(selected) => {
            must_match(selected.as_ref(), &template, errors);
            pod_spec::validate_template(&template, errors);
            pod_spec::validate_restarting_template(&template, "ReplicaSet", errors);
        }
    }
}

/// Counts of pods that are part of all pods; those that are available are ready, too.
fn counted_pods(status: &Cursor<'_>, parts: &[&str], ready_words: &str, errors: &mut Errors) {
    let all = status.field("replicas");
    for part in parts {
        no_more_than(&status.field(part), &all, "cannot be greater than status.replicas", errors);
    }
    no_more_than(&status.field("availableReplicas"), &status.field("readyReplicas"), ready_words, errors);
}

/// How many are ready of how many are wanted, `1/3`.
fn ready_of_wanted(object: &portico_machinery::Object) -> portico_machinery::table::Cell {
    let number = |path: &[&str]| object.at(path).i64().unwrap_or(0);
    let (ready, wanted) = (number(&["status", "readyReplicas"]), number(&["spec", "replicas"]));
    portico_machinery::table::Cell::text(format!("{ready}/{wanted}"))
}
