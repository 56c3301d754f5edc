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

pub(super) use bindings::Binding;
pub(super) use policy::Policy;
pub(super) use webhook_configuration::WebhookConfiguration;

use portico_machinery::Object;

const RESERVED_SUFFIX: &str = ".static.k8s.io";
const RESERVED: &str = "metadata.name: names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and cannot be managed via the API";

/// All six kinds warn of names that files may have.
fn name_warnings(new: &Object) -> Vec<String> {
    let reserved = new.name().ends_with(RESERVED_SUFFIX);
    if reserved { vec![RESERVED.to_owned()] } else { Vec::new() }
}
