//! Pod templates: defaults, validation and warnings of a pod spec, for all kinds that create pods.
//!
//! Does not depend on a kind: pods and the kinds with templates (replication controllers, deployments, jobs, ...) call
//! [`default_template`], [`validate_template`] and [`template_warnings`], or the functions that these consist of.

mod annotations;
mod container_context;
mod containers;
mod defaults;
mod env;
mod handlers;
mod images;
mod mounts;
mod network;
mod os;
mod parts;
mod ports;
mod privileges;
pub mod qos;
mod references;
mod resources;
mod scheduling;
mod security;
pub mod totals;
mod volumes;
mod warnings;
mod windows;

use portico_machinery::{Cursor, Object, names};

use crate::Errors;
use crate::{checks, tolerations, validate_annotations, validate_labels, values};

pub use annotations::{APPARMOR, MIRROR, validate_pod_annotations, validate_profiles_agree};
pub use defaults::{CONTAINER_LISTS, default_spec, drop_old_annotations, round_to_milli};
pub use images::image_without_padding;
pub use parts::{SpecOwner, all_containers, is_sidecar};
pub use privileges::allow as allow_privileges;
pub use references::{config_maps_of, secrets_of};
pub use resources::{
    INTEGER_RESOURCES, aggregate_resource, container_resource_name, is_extended_resource,
    is_integer_resource, overhead as runtime_overhead, resource_name,
};
pub use volumes::claims::{access_modes, validate_claim_spec};
pub use volumes::holder::Holder as VolumeHolder;
pub use volumes::host_path;
pub use volumes::network::source as volume_source;
pub use warnings::{claim_spec_warnings, fractional_bytes, pod_warnings};

/// Sets the defaults of a template (`metadata` and `spec`) that depend on other fields. The kinds data contains the others.
pub fn default_template(template: &mut Object) {
    drop_old_annotations(template);
    template.edit(&["spec"], default_spec);
}

/// Validates a template (`metadata` and `spec`). Errors of the metadata have upstream's paths.
pub fn validate_template(template: &Cursor<'_>, errors: &mut Errors) {
    let metadata = template.field("metadata");
    let labels = template.path().child("labels");
    for mut error in collect_errors(|found| validate_labels(&metadata.field("labels"), found)) {
        error.path = labels.clone();
        errors.push(error);
    }
    let annotations = template.path().child("annotations");
    for mut error in collect_errors(|found| validate_annotations(&metadata.field("annotations"), found)) {
        error.path = annotations.clone();
        errors.push(error);
    }
    let spec = template.field("spec");
    validate_pod_annotations(&metadata.field("annotations"), &spec, &annotations, errors);
    validate_spec(&spec, SpecOwner::Template, errors);
    validate_profiles_agree(&metadata.field("annotations"), &spec, errors);
    let ephemeral = spec.field("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
}

fn collect_errors(validate: impl FnOnce(&mut Errors)) -> Errors {
    let mut errors = Errors::new();
    validate(&mut errors);
    errors
}

/// Validates a pod spec, in upstream's order.
pub fn validate_spec(spec: &Cursor<'_>, owner: SpecOwner<'_>, errors: &mut Errors) {
    let volumes = volumes::validate(&spec.field("volumes"), owner, errors);
    resources::pod_claims(&spec.field("resourceClaims"), owner, errors);
    containers::validate(spec, &volumes, errors);
    if spec.field("resources").is_present() {
        resources::pod_level(spec, errors);
    }
    ports::match_host_network(spec, errors);
    checks::required_one_of(&spec.field("restartPolicy"), &["Always", "OnFailure", "Never"], errors);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    checks::required_one_of(&spec.field("dnsPolicy"), &policies, errors);
    validate_labels(&spec.field("nodeSelector"), errors);
    security::pod(spec, errors);
    scheduling::affinity(&spec.field("affinity"), errors);
    network::dns(spec, errors);
    for gate in spec.field("readinessGates").items() {
        checks::matches_rule(&gate.field("conditionType"), names::qualified_name, errors);
    }
    scheduling::gates(&spec.field("schedulingGates"), errors);
    scheduling::spread(&spec.field("topologySpreadConstraints"), errors);
    os::host_process(spec, errors);
    security::host_users(spec, errors);
    network::hostname_override(spec, errors);
    names(spec, errors);
    let overhead = spec.field("overhead");
    resources::overhead(&overhead, &overhead.path(), errors);
    os::validate(spec, errors);
    env::file_volumes(spec, errors);
}

/// Validates names of other objects, and the deadline.
fn names(spec: &Cursor<'_>, errors: &mut Errors) {
    checks::optional(&spec.field("serviceAccountName"), names::dns1123_subdomain, errors);
    checks::optional(&spec.field("nodeName"), names::dns1123_subdomain, errors);
    let deadline = "must be between 1 and 2147483647, inclusive";
    checks::in_range(&spec.field("activeDeadlineSeconds"), 1, i64::from(i32::MAX), deadline, errors);
    checks::optional(&spec.field("hostname"), values::label, errors);
    checks::optional(&spec.field("subdomain"), values::label, errors);
    tolerations::tolerations(&spec.field("tolerations"), errors);
    network::host_aliases(&spec.field("hostAliases"), errors);
    checks::optional(&spec.field("priorityClassName"), names::dns1123_subdomain, errors);
    if spec.field("runtimeClassName").is_present() {
        checks::matches_rule(&spec.field("runtimeClassName"), names::dns1123_subdomain, errors);
    }
    if spec.field("preemptionPolicy").is_present() {
        checks::required_one_of(&spec.field("preemptionPolicy"), &["PreemptLowerPriority", "Never"], errors);
    }
}

/// Returns the warnings for a template, on creation and on an update that changes the template.
pub fn template_warnings(template: &Cursor<'_>, old: Option<&Cursor<'_>>) -> Vec<String> {
    if old.is_some_and(|old| old.same_as(template)) {
        return Vec::new();
    }
    warnings::collect_warnings(template, true)
}

/// Validates the additional restrictions of a template whose pods are replaced when they end, for kinds such as `Deployment`.
pub fn validate_restarting_template(template: &Cursor<'_>, kind: &str, errors: &mut Errors) {
    let spec = template.field("spec");
    let policy = spec.field("restartPolicy");
    if policy.str() != "Always" {
        errors.push(policy.not_supported(&["Always"]));
    }
    let deadline = spec.field("activeDeadlineSeconds");
    if deadline.is_present() {
        errors.push(deadline.forbidden(&format!("activeDeadlineSeconds in {kind} is not Supported")));
    }
}

/// Names derived from the name of an object, for most kinds with templates.
pub const POD_NAMES_AND_HOSTNAMES: &str = "Pod names and hostnames";

/// Returns the warning for a name that is no DNS label; `used_in` are the names that are derived from it.
pub fn name_warning(object: &Object, used_in: &str) -> Option<String> {
    let diagnostics = values::label(object.name());
    (!diagnostics.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            diagnostics.join(" ")
        )
    })
}
