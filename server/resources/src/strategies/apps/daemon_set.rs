//! DaemonSet: runs a pod on each matching node.

use portico_machinery::{Cursor, Object};

use super::TEMPLATE;
use crate::strategies::workload::{
    ParsedSelector, check_template_labels, go_number, is_empty_selector, parse_selector, template_warnings,
};
use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::counts::{
    all_not_negative, at_most_100_percent, int_or_percent, is_zero, not_decremented,
};
use portico_validation::pod_spec;
use portico_validation::{checks, label_selector};

/// Annotation that counts changes of the template. Upstream's internal type has a field for the count.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(crate) struct DaemonSet;

impl DecodeStrategy for DaemonSet {
    fn conversion_error(&self, object: &Object) -> Option<String> {
        go_number("ParseInt", object.annotation(TEMPLATE_GENERATION)?).err()
    }

    fn default(&self, object: &mut Object, _moment: RequestTime) {
        let generation = template_generation(object);
        set_template_generation(object, generation);
        object.edit(&["spec"], default_spec);
        object.edit(&TEMPLATE, pod_spec::default_template);
    }
}

impl Strategy for DaemonSet {
    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        let generation = template_generation(new).max(1);
        set_template_generation(new, generation);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: RequestTime) {
        set_template_generation(new, template_generation(old));
    }

    fn count_changes(&self, new: &mut Object, old: &Object) {
        if !new.at(&TEMPLATE).same_as(&old.at(&TEMPLATE)) {
            set_template_generation(new, template_generation(old) + 1);
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        let (selector, template) = (spec.field("selector"), spec.field("template"));
        label_selector(&selector, errors);
        if let ParsedSelector::Valid(selected) = parse_selector(&selector) {
            check_template_labels(selected.as_ref(), &template, errors);
        }
        if is_empty_selector(&selector) {
            errors.push(selector.invalid("empty selector is invalid for daemonset"));
        }
        pod_spec::validate_template(&template, errors);
        pod_spec::validate_restarting_template(&template, "DaemonSet", errors);
        all_not_negative(&spec, &["minReadySeconds"], errors);
        validate_update_strategy(&spec.field("updateStrategy"), errors);
        all_not_negative(&spec, &["revisionHistoryLimit"], errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        checks::unchanged(&new.at(&["spec", "selector"]), &old.at(&["spec", "selector"]), errors);
        self.validate(new, errors);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        match old {
            Some(old) if new.at(&TEMPLATE).same_as(&old.at(&TEMPLATE)) => Vec::new(),
            _ => template_warnings(new, old, &TEMPLATE),
        }
    }
}

impl SubresourceStrategy for DaemonSet {
    fn prepare_status(&self, new: &mut Object, old: &Object) {
        set_template_generation(new, template_generation(old));
    }

    fn validate_status(&self, new: &Object, old: &Object, errors: &mut Errors) {
        const COUNTS: [&str; 9] = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ];
        let (status, before) = (new.at(&["status"]), old.at(&["status"]));
        all_not_negative(&status, &COUNTS, errors);
        not_decremented(&status.field("collisionCount"), &before.field("collisionCount"), errors);
    }
}

impl TableStrategy for DaemonSet {
    fn annotation_for_field(&self) -> Option<&'static str> {
        Some(TEMPLATE_GENERATION)
    }
}

fn template_generation(object: &Object) -> i64 {
    object.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_template_generation(object: &mut Object, generation: i64) {
    object.set(&["metadata", "annotations", TEMPLATE_GENERATION], generation.to_string());
}

fn default_spec(spec: &mut Object) {
    if spec.at(&["updateStrategy", "type"]).str() == "RollingUpdate" {
        for (share, number) in [("maxUnavailable", 1), ("maxSurge", 0)] {
            if !spec.at(&["updateStrategy", "rollingUpdate", share]).is_present() {
                spec.set(&["updateStrategy", "rollingUpdate", share], number);
            }
        }
    }
}

fn validate_update_strategy(strategy: &Cursor<'_>, errors: &mut Errors) {
    match strategy.field("type").str() {
        "OnDelete" => {}
        "RollingUpdate" => validate_rolling_update(&strategy.field("rollingUpdate"), errors),
        _ => errors.push(strategy.struct_not_supported(&["RollingUpdate", "OnDelete"])),
    }
}

fn validate_rolling_update(rolling: &Cursor<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    for share in [&unavailable, &surge] {
        int_or_percent(share, errors);
        at_most_100_percent(share, errors);
    }
    match (is_zero(&unavailable), is_zero(&surge)) {
        (false, false) => errors.push(surge.invalid("may not be set when maxUnavailable is non-zero")),
        (true, true) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
        _ => {}
    }
}
