//! Validation of updates of a pod, which has few mutable fields.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use portico_validation::Errors;
use portico_validation::pod_spec::{APPARMOR, MIRROR};

const UPDATE_FORBIDDEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Validates an update, in addition to the validation of the new state.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    validate_annotations(new, old, errors);
    let (new_spec, old_spec) = (new.at(&["spec"]), old.at(&["spec"]));
    for list in ["containers", "initContainers"] {
        let (new_value, old_value) = (new_spec.field(list), old_spec.field(list));
        if new_value.len() != old_value.len() {
            errors.push(new_value.forbidden("pod updates may not add or remove containers"));
            return;
        }
        new_value.items().for_each(|container| validate_image(&container.field("image"), errors));
    }
    if !validate_deadline(&new_spec, &old_spec, errors) {
        return;
    }
    validate_tolerations(&new_spec.field("tolerations"), &old_spec.field("tolerations"), errors);
    validate_gates(&new_spec.field("schedulingGates"), &old_spec.field("schedulingGates"), errors);
    let gated = !old_spec.field("schedulingGates").is_empty();
    if gated {
        validate_node_selector(&new_spec.field("nodeSelector"), &old_spec.field("nodeSelector"), errors);
        validate_node_affinity(&new_spec, &old_spec, errors);
    }
    let munged = munge(new, old, gated);
    if !munged.at(&["spec"]).same_as(&old_spec) {
        let text = format!("{UPDATE_FORBIDDEN}\n{}", difference(&munged.at(&["spec"]), &old.at(&["spec"])));
        errors.push(new_spec.forbidden(&text));
    }
}

/// Validates an image. As upstream, an update reports a missing image a second time.
fn validate_image(image: &Cursor<'_>, errors: &mut Errors) {
    if image.str().is_empty() {
        errors.push(image.required(""));
    }
    if image.str().trim() != image.str() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

/// Checks that annotations with security profiles are unchanged.
fn validate_annotations(new: &Object, old: &Object, errors: &mut Errors) {
    let (new_value, old_value) = (new.metadata().field("annotations"), old.metadata().field("annotations"));
    for (key, value) in old_value.entries().filter(|(key, _)| key.starts_with(APPARMOR)) {
        if new_value.entry_str(key) != Some(value.str()) {
            errors.push(new_value.key(key).forbidden("may not remove or update AppArmor annotations"));
        }
    }
    for (key, at) in new_value.entries().filter(|(key, _)| key.starts_with(APPARMOR)) {
        if old_value.entry_str(key).is_none() {
            errors.push(at.forbidden("may not add AppArmor annotations"));
        }
    }
    match (new_value.entry_str(MIRROR), old_value.entry_str(MIRROR)) {
        (None, Some(_)) => {
            errors.push(new_value.key(MIRROR).forbidden("may not remove or update mirror pod annotation"))
        }
        (Some(a), Some(b)) if a != b => {
            errors.push(new_value.key(MIRROR).forbidden("may not remove or update mirror pod annotation"));
        }
        (Some(_), None) => errors.push(new_value.key(MIRROR).forbidden("may not add mirror pod annotation")),
        _ => {}
    }
}

/// Validates the deadline. Returns `false` if the new one is invalid; as in upstream, validation then ends.
fn validate_deadline(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) -> bool {
    let (new_value, old_value) = (new.field("activeDeadlineSeconds"), old.field("activeDeadlineSeconds"));
    match (new_value.i64(), old_value.i64()) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            errors.push(new_value.invalid("must be between 0 and 2147483647, inclusive"));
            return false;
        }
        (Some(new), Some(old)) if new > old => {
            errors.push(new_value.invalid("must be less than or equal to previous value"));
            return false;
        }
        (None, Some(_)) => {
            let text = "must not update from a positive integer to nil value";
            errors.push(Error::invalid_printed(&new_value.path(), "null", text));
        }
        _ => {}
    }
    true
}

/// Checks that existing tolerations change only their `tolerationSeconds`. Tolerations can be added.
fn validate_tolerations(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    fn identity<'a>(toleration: &Cursor<'a>) -> [&'a str; 4] {
        ["key", "operator", "value", "effect"].map(|field| toleration.field(field).str())
    }
    let new_tolerations: HashSet<_> = new.items().map(|toleration| identity(&toleration)).collect();
    if !old.items().all(|old_item| new_tolerations.contains(&identity(&old_item))) {
        let text = "existing toleration can not be modified except its tolerationSeconds";
        return errors.push(new.forbidden(text));
    }
    // Upstream validates the tolerations again, so that each cause is reported twice.
    portico_validation::tolerations::tolerations(new, errors);
}

fn validate_gates(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let before: HashSet<_> = old.items().map(|gate| gate.field("name").str()).collect();
    for gate in new.items() {
        let name = gate.field("name");
        if !before.contains(name.str()) {
            let text = format!("only deletion is allowed, but found new scheduling gate '{}'", name.str());
            errors.push(name.forbidden(&text));
        }
    }
}

fn validate_node_selector(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    if old.entries().any(|(key, value)| new.entry_str(key) != Some(value.str())) {
        let text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(new.invalid(text));
    }
}

fn validate_node_affinity(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let terms = |spec: &Cursor<'_>| -> Option<(portico_machinery::field::Path, Object)> {
        let required = spec.field("affinity").field("nodeAffinity").field(REQUIRED);
        let object = required.node().and_then(|node| Object::from_node(node).ok())?;
        Some((required.path().child("nodeSelectorTerms"), object))
    };
    let Some((path, old_value)) = terms(old) else { return };
    let new_value = terms(new).map(|(_, object)| object).unwrap_or_default();
    let (new_value, old_value) = (new_value.at(&["nodeSelectorTerms"]), old_value.at(&["nodeSelectorTerms"]));
    if !old_value.is_empty() && new_value.len() != old_value.len() {
        let text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(Error::invalid_printed(&path, &new_value.printed(), text));
        return;
    }
    for (index, (new_item, old_item)) in new_value.items().zip(old_value.items()).enumerate() {
        let only_more = ["matchExpressions", "matchFields"].iter().all(|field| {
            let (new_value, old_value) = (new_item.field(field), old_item.field(field));
            new_value.len() >= old_value.len()
                && new_value.items().zip(old_value.items()).all(|(a, b)| a.same_as(&b))
        });
        if !only_more || (old_item.is_empty() && !new_item.is_empty()) {
            let text = "only additions are allowed (no mutations or deletions)";
            errors.push(Error::invalid_printed(&path.index(index), &new_item.printed(), text));
        }
    }
}

/// Returns the new state with the mutable fields of the old one.
fn munge(new: &Object, old: &Object, gated: bool) -> Object {
    let mut munged = new.clone();
    for list in ["containers", "initContainers"] {
        let images: Vec<String> =
            old.at(&["spec", list]).items().map(|c| c.field("image").str().to_owned()).collect();
        let mut images = images.into_iter();
        munged.edit_each(&["spec", list], |container| {
            if let Some(image) = images.next() {
                container.set(&["image"], image);
            }
        });
    }
    let mut mutable_fields = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    if gated {
        mutable_fields.push("nodeSelector");
        munged.copy_from(old, &["spec", "affinity", "nodeAffinity"]);
        if munged.at(&["spec", "affinity"]).is_empty() && !old.at(&["spec", "affinity"]).is_present() {
            munged.remove(&["spec", "affinity"]);
        }
    }
    for field in mutable_fields {
        munged.copy_from(old, &["spec", field]);
    }
    munged
}

/// Formats the differences, with one line for each side.
fn difference<'a>(new: &Cursor<'a>, old: &Cursor<'a>) -> String {
    let mut lines = Vec::new();
    let fields = old.entries().chain(new.entries().filter(|(field, _)| !old.field(field).is_present()));
    for (field, _) in fields {
        let (new_value, old_value) = (new.field(field), old.field(field));
        if new_value.same_as(&old_value) {
            continue;
        }
        for (sign, at) in [('-', old_value), ('+', new_value)] {
            if at.is_present() {
                lines.push(format!("{sign} {field}: {}\n", at.printed()));
            }
        }
    }
    lines.concat()
}
