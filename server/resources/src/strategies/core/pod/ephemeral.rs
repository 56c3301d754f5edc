//! The subresource `ephemeralcontainers`: containers that are added to a running pod for a look inside.

use portico_machinery::Object;

use portico_validation::Errors;
use portico_validation::pod_spec::MIRROR;

/// Only the ephemeral containers are taken.
pub(super) fn prepare(new: &mut Object, old: &Object) {
    let mut kept = old.clone();
    kept.copy_from(new, &["spec", "ephemeralContainers"]);
    kept.copy_from(new, &["metadata", "resourceVersion"]);
    *new = kept;
}

/// What is there stays as it is.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let path = ["spec", "ephemeralContainers"];
    let (now, then) = (new.at(&path), old.at(&path));
    if old.annotation(MIRROR).is_some() {
        errors.push(now.forbidden("static pods do not support ephemeral containers"));
    }
    for before in then.items() {
        let name = before.field("name").str();
        match now.items().find(|container| container.field("name").str() == name) {
            None => {
                let text = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(now.forbidden(&text));
            }
            Some(after) if !after.same_as(&before) => {
                let text = format!(
                    "existing ephemeral containers {name:?} may not be changed\n- {}\n+ {}\n",
                    before.printed(),
                    after.printed()
                );
                errors.push(now.forbidden(&text));
            }
            Some(_) => {}
        }
    }
}
