//! admissionregistration.k8s.io: webhooks and policies that have a say in others' writes.

mod bindings;
mod expressions;
mod match_resources;
mod mutating_policy;
mod permission;
mod policy;
mod rules;
mod validating_policy;
mod webhook;
mod webhook_configuration;

pub(crate) use bindings::Binding;
pub(crate) use policy::Policy;
pub(crate) use webhook_configuration::WebhookConfiguration;

use portico_machinery::Object;

const RESERVED_SUFFIX: &str = ".static.k8s.io";
const RESERVED: &str = "metadata.name: names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and cannot be managed via the API";

/// What a writer of any of the six kinds is warned of: policies that are not enforced yet, and names that files may have.
fn warnings(new: &Object) -> Vec<String> {
    let stored = || {
        let effect = "no request is checked or changed because of it";
        format!("this {} is stored but not enforced yet: {effect}", new.kind())
    };
    let enforced = !new.kind().starts_with("MutatingAdmissionPolicy");
    let reserved = new.name().ends_with(RESERVED_SUFFIX).then(|| RESERVED.to_owned());
    (!enforced).then(stored).into_iter().chain(reserved).collect()
}

#[cfg(test)]
mod tests {
    use portico_machinery::GroupVersion;

    use super::*;

    #[test]
    fn whoever_writes_one_learns_that_it_is_not_enforced() {
        let kinds = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"];
        for kind in kinds {
            let mut object = Object::new(&GroupVersion::new("admissionregistration.k8s.io", "v1").kind(kind));
            let reported = warnings(&object);
            assert!(
                reported.len() == 1 && reported[0].contains(kind) && reported[0].contains("not enforced yet"),
                "{reported:?}"
            );
            object.set(&["metadata", "name"], "a.static.k8s.io");
            assert_eq!(warnings(&object).len(), 2);
        }
    }
}
