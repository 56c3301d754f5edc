//! Validation of a StatefulSet: policies, claims, a template that may mount them, and the few fields that may change.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use crate::strategies::workload::{Selects, must_match, required_selector};
use portico_validation::Errors;
use portico_validation::counts::{int_or_percent, none_negative};
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

pub(super) fn create(new: &Object, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    policies(&spec, errors);
    for claim in spec.field("volumeClaimTemplates").items() {
        pod_spec::validate_claim_spec(&claim.field("spec"), errors);
    }
    counts(&spec, errors);
    checks::optional(&spec.field("serviceName"), values::label, errors);
    selected_template(new, errors);
}

pub(super) fn update(new: &Object, old: &Object, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    policies(&spec, errors);
    counts(&spec, errors);
    selected_template(new, errors);
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

fn policies(spec: &Cursor<'_>, errors: &mut Errors) {
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
            none_negative(&rolling, &["partition"], errors);
            int_or_percent(&rolling.field("maxUnavailable"), errors);
        }
        _ => errors.push(strategy.invalid("must be 'RollingUpdate' or 'OnDelete'")),
    }
    let retention = spec.field("persistentVolumeClaimRetentionPolicy");
    for when in ["whenDeleted", "whenScaled"] {
        if retention.is_present() && !matches!(retention.field(when).str(), "Retain" | "Delete") {
            errors.push(retention.field(when).not_supported(&["Retain", "Delete"]));
        }
    }
}

fn counts(spec: &Cursor<'_>, errors: &mut Errors) {
    none_negative(spec, &["replicas", "minReadySeconds"], errors);
    none_negative(&spec.field("ordinals"), &["start"], errors);
}

fn selected_template(new: &Object, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    let (selector, template) = (spec.field("selector"), spec.field("template"));
    let selected = match required_selector(&selector, "statefulset", errors) {
        Selects::Unusable => return errors.push(selector.invalid("")),
        Selects::Labels(selected) => selected,
    };
    must_match(selected.as_ref(), &template, errors);
    let mut found = Vec::new();
    pod_spec::validate_template(&as_pods_will_have_it(new).at(&["spec", "template"]), &mut found);
    // Upstream validates the labels and annotations of this kind's templates twice.
    let twice =
        |error: &&Error| matches!(error.path.as_str(), "spec.template.labels" | "spec.template.annotations");
    errors.extend(found.iter().filter(twice).cloned());
    errors.extend(found);
    pod_spec::validate_restarting_template(&template, "StatefulSet", errors);
}

/// The template with a volume for each claim, first and instead of volumes of that name, and with no hostname of its own:
/// the controller gives each pod its.
fn as_pods_will_have_it(new: &Object) -> Object {
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
    let own = new.at(&VOLUMES);
    let replaced: HashSet<&str> = claims.iter().map(String::as_str).collect();
    let kept = own.items().filter(|v| !replaced.contains(v.field("name").str()));
    volumes.extend(kept.filter_map(|v| v.node()).map(|node| node.0));
    pods.set(&VOLUMES, volumes);
    pods
}
