//! admissionregistration.k8s.io: admission webhooks and admission policies.

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

/// Warnings for a writer of any of the six kinds: the name is reserved for configuration from files.
fn warnings(new: &Object) -> Vec<String> {
    new.name().ends_with(RESERVED_SUFFIX).then(|| RESERVED.to_owned()).into_iter().collect()
}
