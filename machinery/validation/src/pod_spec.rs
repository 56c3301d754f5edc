//! The pod template: what every kind that makes pods shares. Defaults, rules and warnings of a pod spec.
//!
//! Knows no kind: pods and the kinds with templates (replication controllers, deployments, jobs, ...) call
//! [`default_template`], [`validate_template`] and [`template_warnings`], or the parts that these are made of.

mod annotations;
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
pub mod quality;
mod references;
mod resources;
mod scene;
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
pub use parts::{Of, all_containers, is_sidecar};
pub use privileges::allow as allow_privileges;
pub use references::{config_maps_of, secrets_of};
pub use resources::{
    COUNTED, container_resource_name, is_counted, is_extended, overhead as runtime_overhead, resource_name,
    total,
};
pub use volumes::claims::{access_modes, validate_claim_spec};
pub use volumes::holder::Holder as VolumeHolder;
pub use volumes::host_path;
pub use volumes::network::source as volume_source;
pub use warnings::{claim_spec_warnings, fractional_bytes, pod_warnings};

/// Sets what absent fields of a template (`metadata` and `spec`) hold, behind the data's own defaults.
pub fn default_template(template: &mut Object) {
    drop_old_annotations(template);
    template.edit(&["spec"], default_spec);
}

/// Validates a template (`metadata` and `spec`); errors of its metadata stand where upstream has them.
pub fn validate_template(template: &Cursor<'_>, errors: &mut Errors) {
    let metadata = template.field("metadata");
    let labels = template.path().child("labels");
    for mut error in collected(|found| validate_labels(&metadata.field("labels"), found)) {
        error.path = labels.clone();
        errors.push(error);
    }
    let annotations = template.path().child("annotations");
    for mut error in collected(|found| validate_annotations(&metadata.field("annotations"), found)) {
        error.path = annotations.clone();
        errors.push(error);
    }
    let spec = template.field("spec");
    validate_pod_annotations(&metadata.field("annotations"), &spec, &annotations, errors);
    validate_spec(&spec, Of::Template, errors);
    validate_profiles_agree(&metadata.field("annotations"), &spec, errors);
    let ephemeral = spec.field("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
}

fn collected(validate: impl FnOnce(&mut Errors)) -> Errors {
    let mut errors = Errors::new();
    validate(&mut errors);
    errors
}

/// Validates a pod spec, in upstream's order.
pub fn validate_spec(spec: &Cursor<'_>, of: Of<'_>, errors: &mut Errors) {
    let volumes = volumes::validate(&spec.field("volumes"), of, errors);
    resources::pod_claims(&spec.field("resourceClaims"), of, errors);
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
        checks::follows(&gate.field("conditionType"), names::qualified_name, errors);
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

/// Names of other things, and the deadline.
fn names(spec: &Cursor<'_>, errors: &mut Errors) {
    checks::optional(&spec.field("serviceAccountName"), names::dns1123_subdomain, errors);
    checks::optional(&spec.field("nodeName"), names::dns1123_subdomain, errors);
    let deadline = "must be between 1 and 2147483647, inclusive";
    checks::between(&spec.field("activeDeadlineSeconds"), 1, i64::from(i32::MAX), deadline, errors);
    checks::optional(&spec.field("hostname"), values::label, errors);
    checks::optional(&spec.field("subdomain"), values::label, errors);
    tolerations::tolerations(&spec.field("tolerations"), errors);
    network::host_aliases(&spec.field("hostAliases"), errors);
    checks::optional(&spec.field("priorityClassName"), names::dns1123_subdomain, errors);
    if spec.field("runtimeClassName").is_present() {
        checks::follows(&spec.field("runtimeClassName"), names::dns1123_subdomain, errors);
    }
    if spec.field("preemptionPolicy").is_present() {
        checks::required_one_of(&spec.field("preemptionPolicy"), &["PreemptLowerPriority", "Never"], errors);
    }
}

/// Warnings for whoever writes a template: on creation, and on an update that changed it.
pub fn template_warnings(template: &Cursor<'_>, old: Option<&Cursor<'_>>) -> Vec<String> {
    if old.is_some_and(|old| old.same_as(template)) {
        return Vec::new();
    }
    warnings::of(template, true)
}

/// A template whose pods are made anew whenever they end: what its kind (`Deployment`, ...) allows beyond the template's
/// own rules.
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

/// What the names of most kinds with templates become part of.
pub const IN_NAMES: &str = "Pod names and hostnames";

/// The error for a name that is no DNS label but becomes part of these.
pub fn name_warning(object: &Object, used_in: &str) -> Option<String> {
    let diagnostics = values::label(object.name());
    (!diagnostics.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            diagnostics.join(" ")
        )
    })
}
