//! Subresource `ephemeralcontainers`: adds containers for debugging to a running pod.

use portico_machinery::Object;
use portico_machinery::field::Error;

use super::metadata;
use portico_validation::Errors;
use portico_validation::pod_spec::MIRROR;

/// Restores the old state of all fields except the ephemeral containers.
pub(super) fn prepare(new: &mut Object, old: &Object) {
    let mut updated = old.clone();
    updated.copy_from(new, &["spec", "ephemeralContainers"]);
    metadata::copy_mutable(&mut updated, new, old);
    *new = updated;
}

/// Returns the error if the pod does not support ephemeral containers. It replaces all other errors.
pub(super) fn refusal(old: &Object) -> Option<Error> {
    old.annotation(MIRROR)
        .map(|_| Error::forbidden(&"[]".into(), "static pods do not support ephemeral containers"))
}

/// Checks that existing ephemeral containers are unchanged.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let path = ["spec", "ephemeralContainers"];
    let (new_value, old_value) = (new.at(&path), old.at(&path));
    for before in old_value.items() {
        let name = before.field("name").str();
        match new_value.items().find(|container| container.field("name").str() == name) {
            None => {
                let text = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(new_value.forbidden(&text));
            }
            Some(after) if !after.same_as(&before) => {
                let text = format!(
                    "existing ephemeral containers {name:?} may not be changed\n- {}\n+ {}\n",
                    before.printed(),
                    after.printed()
                );
                errors.push(new_value.forbidden(&text));
            }
            Some(_) => {}
        }
    }
}
