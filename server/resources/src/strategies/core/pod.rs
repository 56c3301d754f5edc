//! Pod: preparation, validation beyond that of the pod spec, updates, resizes and table cells.

mod create;
mod defaults;
mod ephemeral;
mod metadata;
mod resize;
mod selectable;
mod status;
mod table;
mod update;

use std::borrow::Cow;

use portico_machinery::Object;
use portico_machinery::table::Cell;

use portico_registry::{
    DecodeStrategy, DeleteStrategy, FieldStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy,
};
use portico_validation::Errors;
use portico_validation::pod_spec::{
    APPARMOR, SpecOwner, all_containers, image_without_padding, name_warning, pod_warnings,
    validate_pod_annotations, validate_profiles_agree, validate_spec,
};

pub(crate) struct Pod;

impl DecodeStrategy for Pod {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        defaults::set(object);
    }
}

impl Strategy for Pod {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn prepare_create(&self, new: &mut Object, time: RequestTime) {
        create::prepare(new, time.now);
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_content(new, errors);
        let spec = new.at(&["spec"]);
        let ephemeral = spec.field("ephemeralContainers");
        if !ephemeral.is_empty() {
            errors.push(ephemeral.forbidden("cannot be set on create"));
        }
        let node = spec.field("nodeName");
        if !node.str().is_empty() && !spec.field("schedulingGates").is_empty() {
            errors.push(node.forbidden("cannot be set until all schedulingGates have been cleared"));
        }
        validate_profiles_agree(&new.metadata().field("annotations"), &spec, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate_content(new, errors);
        update::validate(new, old, errors);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let mut warnings = apparmor_warnings(new);
        warnings.extend(name_warning(new, "the Pod's hostname"));
        warnings.extend(pod_warnings(&new.cursor()));
        warnings
    }
}

impl SubresourceStrategy for Pod {
    fn prepare_status(&self, new: &mut Object, old: &Object) {
        status::prepare(new, old);
    }

    fn validate_status(&self, new: &Object, old: &Object, errors: &mut Errors) {
        status::validate(new, old, errors);
    }

    fn prepare_subresource(&self, subresource: &str, new: &mut Object, old: &Object) {
        match subresource {
            "ephemeralcontainers" => ephemeral::prepare(new, old),
            "resize" => resize::prepare(new, old),
            _ => {}
        }
    }

    fn validate_subresource(&self, subresource: &str, new: &Object, old: &Object, errors: &mut Errors) {
        match subresource {
            "ephemeralcontainers" => match ephemeral::refusal(old) {
                Some(refusal) => errors.push(refusal),
                None => {
                    validate_content(new, errors);
                    ephemeral::validate(new, old, errors);
                }
            },
            "resize" => match resize::refusal(old) {
                Some(refusal) => errors.push(refusal),
                None => {
                    let mut found = Errors::new();
                    validate_content(new, &mut found);
                    resize::validate(new, old, &mut found);
                    errors.append(&mut found);
                }
            },
            _ => {}
        }
    }

    fn status_warnings(&self, new: &Object, _old: &Object) -> Vec<String> {
        status::warnings(new)
    }
}

impl DeleteStrategy for Pod {
    fn grace_period(&self, pod: &Object, requested: Option<i64>) -> i64 {
        let has_finished = matches!(pod.str_at("status.phase"), "Succeeded" | "Failed");
        if has_finished || pod.str_at("spec.nodeName").is_empty() {
            return 0;
        }
        let pod_period = || pod.at(&["spec", "terminationGracePeriodSeconds"]).i64().unwrap_or(0);
        match requested.unwrap_or_else(pod_period) {
            negative if negative < 0 => 1,
            seconds => seconds,
        }
    }
}

impl FieldStrategy for Pod {
    fn field<'o>(&self, object: &'o Object, field: &str) -> Cow<'o, str> {
        selectable::field(object, field)
    }
}

impl TableStrategy for Pod {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        table::cell(function, object)
    }

    fn completion(&self, field: &dyn Fn(&str) -> String) -> Option<(&'static str, &'static str)> {
        match field("status.phase").as_str() {
            "Succeeded" => Some(("Succeeded", "The pod has completed successfully.")),
            "Failed" => Some(("Failed", "The pod failed.")),
            _ => None,
        }
    }
}

/// Validates the content on every write of a spec.
fn validate_content(pod: &Object, errors: &mut Errors) {
    let spec = pod.at(&["spec"]);
    let annotations = pod.metadata().field("annotations");
    validate_pod_annotations(&annotations, &spec, &annotations.path(), errors);
    validate_spec(&spec, SpecOwner::Pod(pod), errors);
    if spec.field("serviceAccountName").str().is_empty() {
        for volume in spec.field("volumes").items() {
            for source in volume.field("projected").field("sources").items() {
                let token = source.field("serviceAccountToken");
                if token.is_present() {
                    errors.push(token.forbidden("must not be specified when serviceAccountName is not set"));
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        spec.field(list).items().for_each(|container| image_without_padding(&container, errors));
    }
}

fn apparmor_warnings(pod: &Object) -> Vec<String> {
    let annotations = pod.metadata().field("annotations");
    let mut warnings = Vec::new();
    for container in all_containers(&pod.at(&["spec"])) {
        let key = format!("{APPARMOR}{}", container.field("name").str());
        if annotations.entry_str(&key).is_some() {
            let text = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
            warnings.push(format!("metadata.annotations[{key}]: {text}"));
        }
    }
    warnings
}
