//! Validation of a StatefulSet: policies, claims, template, and immutable fields.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use crate::strategies::workload::{ParsedSelector, check_template_labels, require_selector};
use portico_validation::Errors;
use portico_validation::counts::{all_not_negative, int_or_percent};
use portico_validation::pod_spec;
use portico_validation::{checks, values};

const FORBIDDEN: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

pub(super) fn validate_create(new: &Object, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    validate_policies(&spec, errors);
    for claim in spec.field("volumeClaimTemplates").items() {
        pod_spec::validate_claim_spec(&claim.field("spec"), errors);
    }
    validate_counts(&spec, errors);
    checks::optional(&spec.field("serviceName"), values::label, errors);
    validate_selected_template(new, errors);
}

pub(super) fn update(new: &Object, old: &Object, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    validate_policies(&spec, errors);
    validate_counts(&spec, errors);
    validate_selected_template(new, errors);
    let fixed = |object: &Object| {
        let mut rest = object.clone();
        for field in MUTABLE {
            rest.remove(&["spec", field]);
        }
        rest
    };
    if !fixed(new).at(&["spec"]).same_as(&fixed(old).at(&["spec"])) {
        errors.push(spec.forbidden(FORBIDDEN));
    }
}

fn validate_policies(spec: &Cursor<'_>, errors: &mut Errors) {
    let management = spec.field("podManagementPolicy");
    if !matches!(management.str(), "OrderedReady" | "Parallel") {
        errors.push(management.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    let strategy = spec.field("updateStrategy");
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").str() {
        "" => errors.push(strategy.required("")),
        "OnDelete" => {
            if rolling.is_present() {
                errors.push(rolling.invalid("only allowed for updateStrategy 'RollingUpdate'"));
            }
        }
        "RollingUpdate" => {
            all_not_negative(&rolling, &["partition"], errors);
            int_or_percent(&rolling.field("maxUnavailable"), errors);
        }
        _ => errors.push(strategy.invalid("must be 'RollingUpdate' or 'OnDelete'")),
    }
    let retention = spec.field("persistentVolumeClaimRetentionPolicy");
    for event in ["whenDeleted", "whenScaled"] {
        if retention.is_present() && !matches!(retention.field(event).str(), "Retain" | "Delete") {
            errors.push(retention.field(event).not_supported(&["Retain", "Delete"]));
        }
    }
}

fn validate_counts(spec: &Cursor<'_>, errors: &mut Errors) {
    all_not_negative(spec, &["replicas", "minReadySeconds"], errors);
    all_not_negative(&spec.field("ordinals"), &["start"], errors);
}

fn validate_selected_template(new: &Object, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    let (selector, template) = (spec.field("selector"), spec.field("template"));
    let selected = match require_selector(&selector, "statefulset", errors) {
        ParsedSelector::Invalid => return errors.push(selector.invalid("")),
        ParsedSelector::Valid(selected) => selected,
    };
    check_template_labels(selected.as_ref(), &template, errors);
    let mut found = Vec::new();
    pod_spec::validate_template(&template_of_pods(new).at(&["spec", "template"]), &mut found);
    // Upstream validates the labels and annotations of the template twice for this kind.
    let duplicates =
        |error: &&Error| matches!(error.path.as_str(), "spec.template.labels" | "spec.template.annotations");
    errors.extend(found.iter().filter(duplicates).cloned());
    errors.extend(found);
    pod_spec::validate_restarting_template(&template, "StatefulSet", errors);
}

/// Returns the template as the controller uses it: with a volume for each claim, which replaces volumes of the same name, and
/// without hostname and subdomain, which the controller sets for each pod.
fn template_of_pods(new: &Object) -> Object {
    const VOLUMES: [&str; 4] = ["spec", "template", "spec", "volumes"];
    let mut pods = Object::default();
    pods.copy_from(new, &["spec", "template"]);
    for field in ["hostname", "subdomain"] {
        pods.remove(&["spec", "template", "spec", field]);
    }
    let claims: Vec<String> = new
        .at(&["spec", "volumeClaimTemplates"])
        .items()
        .map(|claim| claim.field("metadata").field("name").str().to_owned())
        .collect();
    if claims.is_empty() {
        return pods;
    }
    let mut volumes: Vec<_> = claims
        .iter()
        .map(|name| {
            let mut volume = Object::default();
            volume.set(&["name"], name);
            volume.set(&["persistentVolumeClaim", "claimName"], name);
            volume.into_node().0
        })
        .collect();
    let template_volumes = new.at(&VOLUMES);
    let replaced: HashSet<&str> = claims.iter().map(String::as_str).collect();
    let remaining = template_volumes.items().filter(|v| !replaced.contains(v.field("name").str()));
    volumes.extend(remaining.filter_map(|v| v.node()).map(|node| node.0));
    pods.set(&VOLUMES, volumes);
    pods
}
