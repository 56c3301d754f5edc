//! Deployment: rolling updates of ReplicaSets.

use portico_machinery::field::{Error, Path};
use portico_machinery::selector::LabelSelector;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use super::{TEMPLATE, ready_cell, validate_pod_counts, validate_selector_and_template};
use crate::strategies::workload::{go_number, template_warnings};
use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::checks;
use portico_validation::counts::{
    all_not_negative, at_most_100_percent, int_or_percent, is_zero, not_decremented,
};
use portico_validation::pod_spec;

/// Annotation that requests a rollback. Upstream converts it to a field of its internal type, and back.
const ROLLBACK: &str = "deprecated.deployment.rollback.to";

pub(crate) struct Deployment;

impl DecodeStrategy for Deployment {
    fn conversion_error(&self, object: &Object) -> Option<String> {
        let text = object.annotation(ROLLBACK).filter(|text| !text.is_empty())?;
        let error = go_number("ParseInt", text).err()?;
        Some(format!("failed to parse annotation[{ROLLBACK}]={text} as int64: {error}"))
    }

    fn default(&self, object: &mut Object, _moment: RequestTime) {
        if let Some(revision) = rollback(object) {
            object.set(&["metadata", "annotations", ROLLBACK], revision.to_string());
        }
        object.edit(&["spec"], default_spec);
        object.edit(&TEMPLATE, pod_spec::default_template);
    }
}

impl Strategy for Deployment {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        all_not_negative(&spec, &["replicas"], errors);
        validate_selector_and_template(&spec, errors);
        validate_strategy(&spec.field("strategy"), errors);
        if let Some(revision) = rollback(new).filter(|revision| *revision < 0) {
            let path = Path::new("spec.rollback.version");
            errors.push(Error::invalid(&path, revision, "must be greater than or equal to 0"));
        }
        all_not_negative(&spec, &["minReadySeconds", "revisionHistoryLimit"], errors);
        let deadline = spec.field("progressDeadlineSeconds");
        if let Some(seconds) = deadline.i64() {
            checks::not_negative(&deadline, errors);
            if seconds <= spec.field("minReadySeconds").i64().unwrap_or(0) {
                errors.push(deadline.invalid("must be greater than minReadySeconds"));
            }
        }
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

impl SubresourceStrategy for Deployment {
    fn validate_status(&self, new: &Object, old: &Object, errors: &mut Errors) {
        const COUNTS: [&str; 8] = [
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ];
        const PARTS: [&str; 3] = ["updatedReplicas", "readyReplicas", "availableReplicas"];
        let (status, before) = (new.at(&["status"]), old.at(&["status"]));
        all_not_negative(&status, &COUNTS, errors);
        validate_pod_counts(&status, &PARTS, "cannot be greater than readyReplicas", errors);
        not_decremented(&status.field("collisionCount"), &before.field("collisionCount"), errors);
    }
}

impl TableStrategy for Deployment {
    fn annotation_for_field(&self) -> Option<&'static str> {
        Some(ROLLBACK)
    }

    fn cell(&self, function: &str, object: &Object) -> Cell {
        match function {
            "deployment-ready" => ready_cell(object),
            _ => match LabelSelector::from_object(&object.at(&["spec", "selector"])) {
                // Unlike other kinds, a Deployment shows an empty selector as an empty text.
                Ok(selector) => Cell::text(selector.map_or_else(String::new, |s| s.to_string())),
                Err(_) => Cell::text("<invalid>"),
            },
        }
    }
}

fn rollback(object: &Object) -> Option<i64> {
    object.annotation(ROLLBACK)?.parse().ok()
}

fn default_spec(spec: &mut Object) {
    if spec.at(&["strategy", "type"]).str() == "RollingUpdate" {
        for share in ["maxUnavailable", "maxSurge"] {
            if !spec.at(&["strategy", "rollingUpdate", share]).is_present() {
                spec.set(&["strategy", "rollingUpdate", share], "25%");
            }
        }
    }
}

fn validate_strategy(strategy: &Cursor<'_>, errors: &mut Errors) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").str() {
        "Recreate" => {
            if rolling.is_present() {
                errors.push(rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
            }
        }
        "RollingUpdate" => validate_rolling_update(&rolling, errors),
        _ => errors.push(strategy.struct_not_supported(&["Recreate", "RollingUpdate"])),
    }
}

fn validate_rolling_update(rolling: &Cursor<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    int_or_percent(&unavailable, errors);
    int_or_percent(&surge, errors);
    if is_zero(&unavailable) && is_zero(&surge) {
        errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
    at_most_100_percent(&unavailable, errors);
}
