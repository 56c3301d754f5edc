//! ReplicaSet: runs a number of pods of one template.

use portico_machinery::Object;

use super::{TEMPLATE, validate_pod_counts, validate_selector_and_template};
use crate::strategies::workload::template_warnings;
use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy};
use portico_validation::Errors;
use portico_validation::checks;
use portico_validation::counts::all_not_negative;
use portico_validation::pod_spec;

pub(crate) struct ReplicaSet;

impl DecodeStrategy for ReplicaSet {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        object.edit(&TEMPLATE, pod_spec::default_template);
    }
}

impl Strategy for ReplicaSet {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        all_not_negative(&spec, &["replicas", "minReadySeconds"], errors);
        validate_selector_and_template(&spec, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        checks::unchanged(&new.at(&["spec", "selector"]), &old.at(&["spec", "selector"]), errors);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let name =
            if old.is_none() { pod_spec::name_warning(new, pod_spec::POD_NAMES_AND_HOSTNAMES) } else { None };
        name.into_iter().chain(template_warnings(new, old, &TEMPLATE)).collect()
    }
}

impl SubresourceStrategy for ReplicaSet {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        const COUNTS: [&str; 6] = [
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ];
        const PARTS: [&str; 3] = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
        let status = new.at(&["status"]);
        all_not_negative(&status, &COUNTS, errors);
        validate_pod_counts(&status, &PARTS, "cannot be greater than readyReplicas", errors);
    }
}
