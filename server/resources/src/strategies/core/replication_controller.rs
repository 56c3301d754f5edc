//! ReplicationController: selector and labels defaulted from the template, restart policy `Always`, counts of replicas.

use std::borrow::Cow;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use portico_registry::{DecodeStrategy, FieldStrategy, RequestTime, Strategy, SubresourceStrategy};
use portico_validation::Errors;
use portico_validation::checks;
use portico_validation::pod_spec::{
    default_template, name_warning, template_warnings, validate_restarting_template, validate_template,
};

pub(crate) struct ReplicationController;

impl DecodeStrategy for ReplicationController {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        object.edit(&["spec", "template"], default_template);
        default_labels(object);
    }
}

/// Sets the labels of the template as selector and labels of an object that has none. Returns `true` if the labels changed.
fn default_labels(object: &mut Object) -> bool {
    let Some(labels) = object.get(&["spec", "template", "metadata", "labels"]) else { return false };
    let mut changed = false;
    for path in [&["spec", "selector"], &["metadata", "labels"]] {
        if object.at(path).is_empty() {
            object.put(path, labels.clone());
            changed = true;
        }
    }
    changed
}

impl Strategy for ReplicationController {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        checks::not_negative(&spec.field("minReadySeconds"), errors);
        let selector = spec.field("selector");
        if selector.is_empty() {
            errors.push(selector.required(""));
        }
        checks::not_negative(&spec.field("replicas"), errors);
        let template = spec.field("template");
        if !template.is_present() {
            errors.push(template.required(""));
            return;
        }
        let labels = template.field("metadata").field("labels");
        if !selector.is_empty() && !selector.entries().all(|(k, v)| labels.entry_str(k) == Some(v.str())) {
            let text = "`selector` does not match template `labels`";
            let printed = if labels.is_present() { labels.printed() } else { "{}".to_owned() };
            errors.push(Error::invalid_printed(&labels.path(), &printed, text));
        }
        validate_template(&template, errors);
        validate_restarting_template(&template, "ReplicationController", errors);
    }

    /// Sets labels also on writes of the status: upstream defaults the labels of every object that it decodes.
    fn canonicalize(&self, new: &mut Object) -> bool {
        default_labels(new)
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let Some(old) = old else {
            let mut warnings: Vec<String> =
                name_warning(new, "Pod names and hostnames").into_iter().collect();
            warnings.extend(template_warnings(&new.at(&["spec", "template"]), None));
            return warnings;
        };
        // Upstream compares the spec with the old one.
        if new.at(&["spec"]).same_as(&old.at(&["spec"])) {
            return Vec::new();
        }
        template_warnings(&old.at(&["spec", "template"]), None)
    }
}

impl SubresourceStrategy for ReplicationController {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        let status = new.at(&["status"]);
        for field in
            ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"]
        {
            checks::not_negative(&status.field(field), errors);
        }
        let number = |field: &'static str| count(&status, field);
        for field in ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
            if number(field) > number("replicas") {
                errors.push(status.field(field).invalid("cannot be greater than status.replicas"));
            }
        }
        if number("availableReplicas") > number("readyReplicas") {
            errors.push(status.field("availableReplicas").invalid("cannot be greater than readyReplicas"));
        }
    }
}

impl FieldStrategy for ReplicationController {
    fn field<'o>(&self, object: &'o Object, field: &str) -> Cow<'o, str> {
        match field {
            "status.replicas" => Cow::Owned(count(&object.at(&["status"]), "replicas").to_string()),
            _ => Cow::Borrowed(object.str_at(field)),
        }
    }
}

fn count(status: &Cursor<'_>, field: &str) -> i64 {
    status.field(field).i64().unwrap_or(0)
}
