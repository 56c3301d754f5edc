//! Job: pods that run to completion.

mod indexes;
mod policies;
mod spec;
mod status;
mod update;

pub(super) use spec::validate_spec;

use std::borrow::Cow;

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, time};

use super::job_warnings;
use portico_registry::options::DeleteOptions;
use portico_registry::{
    DecodeStrategy, DeleteStrategy, FieldStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy,
};
use portico_validation::Errors;
use portico_validation::label_selector;
use portico_validation::pod_spec;
use spec::TEMPLATE_LABELS;
use status::is_condition_true;

const PODS_REMAIN_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

pub(crate) struct Job;

impl DecodeStrategy for Job {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        object.edit(&["spec"], default_spec);
        object.edit(&["spec", "template"], pod_spec::default_template);
    }
}

impl Strategy for Job {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        let shared = !new.at(&TEMPLATE_LABELS).is_empty();
        if !new.at(&["spec", "manualSelector"]).bool() {
            generate_selector(new);
        }
        if shared {
            default_labels(new);
        }
    }

    fn canonicalize(&self, new: &mut Object) -> bool {
        default_labels(new)
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        spec::validate_generated(new, errors);
        validate_own_spec(new, errors);
        spec::validate_host_names(new, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        spec::validate_generated_update(new, old, errors);
        validate_own_spec(new, errors);
        spec::validate_host_names(new, errors);
        validate_own_spec(new, errors);
        update::validate(new, old, errors);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let name =
            if old.is_none() { pod_spec::name_warning(new, pod_spec::POD_NAMES_AND_HOSTNAMES) } else { None };
        name.into_iter().chain(job_warnings(new, old, &["spec"])).collect()
    }
}

impl SubresourceStrategy for Job {
    fn validate_status(&self, new: &Object, old: &Object, errors: &mut Errors) {
        status::validate(new, old, errors);
    }
}

impl DeleteStrategy for Job {
    fn delete_warnings(&self, options: &DeleteOptions) -> Vec<String> {
        match options.requested_propagation() {
            None => vec![PODS_REMAIN_WARNING.to_owned()],
            Some(_) => Vec::new(),
        }
    }
}

impl FieldStrategy for Job {
    fn field<'o>(&self, object: &'o Object, field: &str) -> Cow<'o, str> {
        match field {
            "status.successful" => {
                Cow::Owned(object.at(&["status", "succeeded"]).i64().unwrap_or(0).to_string())
            }
            other => Cow::Borrowed(object.str_at(other)),
        }
    }

    fn unknown_field(&self, field: &str) -> String {
        format!("field label {field:?} not supported for Job")
    }
}

impl TableStrategy for Job {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        match function {
            "job-status" => Cell::text(status_cell(object)),
            "job-completions" => Cell::text(completions_cell(object)),
            _ => duration_cell(&object.at(&["status"])),
        }
    }
}

/// Validates the spec and the selector of a job that is not a template.
fn validate_own_spec(new: &Object, errors: &mut Errors) {
    use crate::strategies::workload::{ParsedSelector, check_template_labels, parse_selector};
    let spec = new.at(&["spec"]);
    let selector = spec.field("selector");
    validate_spec(&spec, errors);
    if !selector.is_present() {
        errors.push(selector.required(""));
    }
    label_selector(&selector, errors);
    if let ParsedSelector::Valid(selected) = parse_selector(&selector) {
        check_template_labels(selected.as_ref(), &spec.field("template"), errors);
    }
}

fn default_spec(spec: &mut Object) {
    let is_there = |spec: &Object, field: &str| spec.at(&[field]).is_present();
    if !is_there(spec, "parallelism") {
        if !is_there(spec, "completions") {
            spec.set(&["completions"], 1);
        }
        spec.set(&["parallelism"], 1);
    }
    if !is_there(spec, "backoffLimit") {
        let limit = if is_there(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
        spec.set(&["backoffLimit"], limit);
    }
    let replacement = if is_there(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    for (field, default) in [("completionMode", "NonIndexed"), ("podReplacementPolicy", replacement)] {
        if !is_there(spec, field) {
            spec.set(&[field], default);
        }
    }
    for field in ["suspend", "manualSelector"] {
        if !is_there(spec, field) {
            spec.set(&[field], false);
        }
    }
}

/// Generates the selector. The UID distinguishes the pods of this job from all others.
fn generate_selector(new: &mut Object) {
    let (name, uid) = (new.name().to_owned(), new.uid().to_owned());
    for (key, value) in spec::generated_labels(&name, &uid) {
        let path = [TEMPLATE_LABELS.as_slice(), &[key]].concat();
        if !new.at(&path).is_present() {
            new.set(&path, value);
        }
    }
    let path = ["spec", "selector", "matchLabels", spec::CONTROLLER_UID];
    if !new.at(&path).is_present() {
        new.set(&path, uid);
    }
}

/// Copies the labels of the template to a job without labels. Returns `true` if labels were added.
fn default_labels(new: &mut Object) -> bool {
    if !new.at(&["metadata", "labels"]).is_empty() {
        return false;
    }
    let labels = new.get(&TEMPLATE_LABELS);
    let found = labels.is_some();
    labels.into_iter().for_each(|labels| new.put(&["metadata", "labels"], labels));
    found
}

fn status_cell(object: &Object) -> &'static str {
    let conditions = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
    if is_condition_true(object, "Complete") {
        "Complete"
    } else if is_condition_true(object, "Failed") {
        "Failed"
    } else if object.deletion_timestamp().is_some() {
        "Terminating"
    } else {
        conditions.into_iter().find(|kind| is_condition_true(object, kind)).unwrap_or("Running")
    }
}

fn completions_cell(object: &Object) -> String {
    let succeeded = object.at(&["status", "succeeded"]).i64().unwrap_or(0);
    let (completions, parallelism) =
        (object.at(&["spec", "completions"]).i64(), object.at(&["spec", "parallelism"]).i64().unwrap_or(0));
    match completions {
        Some(all) => format!("{succeeded}/{all}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

fn duration_cell(status: &Cursor<'_>) -> Cell {
    let Some(start) = status.field("startTime").opt_str() else { return Cell::text("") };
    let end = status.field("completionTime").opt_str().and_then(time::parse);
    match end.zip(time::parse(start)) {
        Some((end, start)) => Cell::text(time::human_duration(end.as_second() - start.as_second())),
        None => Cell::Age(Some(start.to_owned())),
    }
}
