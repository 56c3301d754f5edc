//! What may change of a pod once it is there: very little.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use portico_validation::Errors;
use portico_validation::pod_spec::{APPARMOR, MIRROR};

const REFUSED: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Validates a change of a pod, beyond what its new state must be in any case.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    annotations(new, old, errors);
    let (new_spec, old_spec) = (new.at(&["spec"]), old.at(&["spec"]));
    for list in ["containers", "initContainers"] {
        let (now, then) = (new_spec.field(list), old_spec.field(list));
        if now.len() != then.len() {
            errors.push(now.forbidden("pod updates may not add or remove containers"));
            return;
        }
        now.items().for_each(|container| image(&container.field("image"), errors));
    }
    if !deadline(&new_spec, &old_spec, errors) {
        return;
    }
    tolerations(&new_spec.field("tolerations"), &old_spec.field("tolerations"), errors);
    gates(&new_spec.field("schedulingGates"), &old_spec.field("schedulingGates"), errors);
    let gated = !old_spec.field("schedulingGates").is_empty();
    if gated {
        node_selector(&new_spec.field("nodeSelector"), &old_spec.field("nodeSelector"), errors);
        node_affinity(&new_spec, &old_spec, errors);
    }
    let munged = munged(new, old, gated);
    if !munged.at(&["spec"]).same_as(&old_spec) {
        let text = format!("{REFUSED}\n{}", difference(&munged.at(&["spec"]), &old.at(&["spec"])));
        errors.push(new_spec.forbidden(&text));
    }
}

/// An image; a change reports once more that it is missing.
fn image(image: &Cursor<'_>, errors: &mut Errors) {
    if image.str().is_empty() {
        errors.push(image.required(""));
    }
    if image.str().trim() != image.str() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

/// Annotations that made the pod what it is.
fn annotations(new: &Object, old: &Object, errors: &mut Errors) {
    let (now, then) = (new.metadata().field("annotations"), old.metadata().field("annotations"));
    for (key, value) in then.entries().filter(|(key, _)| key.starts_with(APPARMOR)) {
        if now.entry_str(key) != Some(value.str()) {
            errors.push(now.key(key).forbidden("may not remove or update AppArmor annotations"));
        }
    }
    for (key, at) in now.entries().filter(|(key, _)| key.starts_with(APPARMOR)) {
        if then.entry_str(key).is_none() {
            errors.push(at.forbidden("may not add AppArmor annotations"));
        }
    }
    match (now.entry_str(MIRROR), then.entry_str(MIRROR)) {
        (None, Some(_)) => {
            errors.push(now.key(MIRROR).forbidden("may not remove or update mirror pod annotation"))
        }
        (Some(a), Some(b)) if a != b => {
            errors.push(now.key(MIRROR).forbidden("may not remove or update mirror pod annotation"));
        }
        (Some(_), None) => errors.push(now.key(MIRROR).forbidden("may not add mirror pod annotation")),
        _ => {}
    }
}

/// Validates the deadline. Returns false if the new one is refused: upstream validates nothing further then.
fn deadline(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) -> bool {
    let (now, then) = (new.field("activeDeadlineSeconds"), old.field("activeDeadlineSeconds"));
    match (now.i64(), then.i64()) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            errors.push(now.invalid("must be between 0 and 2147483647, inclusive"));
            return false;
        }
        (Some(new), Some(old)) if new > old => {
            errors.push(now.invalid("must be less than or equal to previous value"));
            return false;
        }
        (None, Some(_)) => {
            let text = "must not update from a positive integer to nil value";
            errors.push(Error::invalid_printed(&now.path(), "null", text));
        }
        _ => {}
    }
    true
}

/// Tolerations may be added, and theirs may change how long they last.
fn tolerations(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    fn identity<'a>(toleration: &Cursor<'a>) -> [&'a str; 4] {
        ["key", "operator", "value", "effect"].map(|field| toleration.field(field).str())
    }
    let now: HashSet<_> = new.items().map(|toleration| identity(&toleration)).collect();
    if !old.items().all(|then| now.contains(&identity(&then))) {
        let text = "existing toleration can not be modified except its tolerationSeconds";
        return errors.push(new.forbidden(text));
    }
    // Upstream validates them again, and reports each cause twice.
    portico_validation::tolerations::tolerations(new, errors);
}

fn gates(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let before: HashSet<_> = old.items().map(|gate| gate.field("name").str()).collect();
    for gate in new.items() {
        let name = gate.field("name");
        if !before.contains(name.str()) {
            let text = format!("only deletion is allowed, but found new scheduling gate '{}'", name.str());
            errors.push(name.forbidden(&text));
        }
    }
}

fn node_selector(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    if old.entries().any(|(key, value)| new.entry_str(key) != Some(value.str())) {
        let text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(new.invalid(text));
    }
}

fn node_affinity(new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let terms = |spec: &Cursor<'_>| -> Option<(portico_machinery::field::Path, Object)> {
        let required = spec.field("affinity").field("nodeAffinity").field(REQUIRED);
        let object = required.node().and_then(|node| Object::from_node(node).ok())?;
        Some((required.path().child("nodeSelectorTerms"), object))
    };
    let Some((path, then)) = terms(old) else { return };
    let now = terms(new).map(|(_, object)| object).unwrap_or_default();
    let (now, then) = (now.at(&["nodeSelectorTerms"]), then.at(&["nodeSelectorTerms"]));
    if !then.is_empty() && now.len() != then.len() {
        let text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(Error::invalid_printed(&path, &now.printed(), text));
        return;
    }
    for (index, (now, then)) in now.items().zip(then.items()).enumerate() {
        let only_more = ["matchExpressions", "matchFields"].iter().all(|field| {
            let (now, then) = (now.field(field), then.field(field));
            now.len() >= then.len() && now.items().zip(then.items()).all(|(a, b)| a.same_as(&b))
        });
        if !only_more || (then.is_empty() && !now.is_empty()) {
            let text = "only additions are allowed (no mutations or deletions)";
            errors.push(Error::invalid_printed(&path.index(index), &now.printed(), text));
        }
    }
}

/// The new state with everything that may change as it was.
fn munged(new: &Object, old: &Object, gated: bool) -> Object {
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
    let mut kept = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    if gated {
        kept.push("nodeSelector");
        munged.copy_from(old, &["spec", "affinity", "nodeAffinity"]);
        if munged.at(&["spec", "affinity"]).is_empty() && !old.at(&["spec", "affinity"]).is_present() {
            munged.remove(&["spec", "affinity"]);
        }
    }
    for field in kept {
        munged.copy_from(old, &["spec", field]);
    }
    munged
}

/// What differs, one line a side.
fn difference<'a>(new: &Cursor<'a>, old: &Cursor<'a>) -> String {
    let mut lines = Vec::new();
    let fields = old.entries().chain(new.entries().filter(|(field, _)| !old.field(field).is_present()));
    for (field, _) in fields {
        let (now, then) = (new.field(field), old.field(field));
        if now.same_as(&then) {
            continue;
        }
        for (sign, at) in [('-', then), ('+', now)] {
            if at.is_present() {
                lines.push(format!("{sign} {field}: {}\n", at.printed()));
            }
        }
    }
    lines.concat()
}
