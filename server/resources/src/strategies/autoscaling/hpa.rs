//! HorizontalPodAutoscaler: stored as v2. In v1, annotations contain the fields that v1 lacks.

mod cells;
mod convert;
mod metrics;
mod validate;

use portico_machinery::Object;
use portico_machinery::table::Cell;

use convert::PREFIX;
use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::counts::all_not_negative;

const V1_ANNOTATIONS: [&str; 6] =
    ["metrics", "behavior", "current-metrics", "conditions", "scale-down-tolerance", "scale-up-tolerance"];

pub(crate) struct HorizontalPodAutoscaler;

impl DecodeStrategy for HorizontalPodAutoscaler {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        for name in V1_ANNOTATIONS {
            object.remove(&["metadata", "annotations", &format!("{PREFIX}{name}")]);
        }
        if object.at(&["spec", "metrics"]).is_empty() {
            object.put(&["spec", "metrics"], metrics::list([metrics::cpu_utilization(80)]));
        }
        object.edit(&["spec", "behavior"], default_behavior);
    }

    fn to_storage(&self, object: &mut Object) {
        convert::from_v1(object);
    }

    fn to_version(&self, object: &mut Object) {
        convert::to_v1(object);
    }
}

impl Strategy for HorizontalPodAutoscaler {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate::validate_spec(&new.at(&["spec"]), None, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate::validate_spec(&new.at(&["spec"]), Some(&old.at(&["spec"])), errors);
    }
}

impl SubresourceStrategy for HorizontalPodAutoscaler {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        all_not_negative(&new.at(&["status"]), &["currentReplicas", "desiredReplicas"], errors);
    }
}

impl TableStrategy for HorizontalPodAutoscaler {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        cells::cell(function, object)
    }
}

/// Defaults the rules of both directions. Sets only absent fields.
fn default_behavior(behavior: &mut Object) {
    for direction in ["scaleUp", "scaleDown"] {
        if !behavior.at(&[direction]).is_present() {
            behavior.put(&[direction], Object::default().into_node());
        }
        let up = direction == "scaleUp";
        behavior.edit(&[direction], |rules| {
            if up && !rules.at(&["stabilizationWindowSeconds"]).is_present() {
                rules.set(&["stabilizationWindowSeconds"], 0);
            }
            if !rules.at(&["selectPolicy"]).is_present() {
                rules.set(&["selectPolicy"], "Max");
            }
            if !rules.at(&["policies"]).is_present() {
                let percent = policy("Percent", 100);
                let policies = if up { vec![policy("Pods", 4), percent] } else { vec![percent] };
                rules.put(&["policies"], metrics::list(policies));
            }
        });
    }
}

fn policy(kind: &str, value: i32) -> Object {
    let mut policy = Object::default();
    policy.set(&["type"], kind);
    policy.set(&["value"], value);
    policy.set(&["periodSeconds"], 15);
    policy
}
