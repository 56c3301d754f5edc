//! The subresource `ephemeralcontainers`: containers that are added to a running pod for a look inside.

use portico_machinery::Object;
use portico_machinery::field::Error;

use super::metadata;
use portico_validation::Errors;
use portico_validation::pod_spec::MIRROR;

/// Takes only the ephemeral containers.
pub(super) fn prepare(new: &mut Object, old: &Object) {
    let mut kept = old.clone();
    kept.copy_from(new, &["spec", "ephemeralContainers"]);
    metadata::keep(&mut kept, new, old);
    *new = kept;
}

/// The reason why a pod takes no ephemeral containers, which replaces everything else that is wrong.
pub(super) fn refusal(old: &Object) -> Option<Error> {
    old.annotation(MIRROR)
        .map(|_| Error::forbidden(&"[]".into(), "static pods do not support ephemeral containers"))
}

/// Existing ephemeral containers stay as they are.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let path = ["spec", "ephemeralContainers"];
    let (now, then) = (new.at(&path), old.at(&path));
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
