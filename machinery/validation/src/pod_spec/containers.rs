//! Validation of the three lists of containers: the common rules, and the rules of each list.

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::container_context::ContainerContext;
use super::parts::is_sidecar;
use super::volumes::ValidVolumes;
use super::{env, handlers, images, mounts, ports, resources, security};
use crate::Errors;
use crate::{checks, values};

/// Maximum number of restart rules of a container.
const RULES_MAX: usize = 20;
/// Maximum number of exit codes of a restart rule.
const EXIT_CODES_MAX: usize = 255;

/// Validates all three lists of containers.
pub(super) fn validate<'a>(spec: &Cursor<'a>, volumes: &ValidVolumes<'a>, errors: &mut Errors) {
    let context = ContainerContext { spec: spec.clone(), volumes };
    let mut names = HashSet::new();
    regular(&context, &mut names, errors);
    init(&context, &mut names, errors);
    ephemeral(&context, &mut names, errors);
}

fn regular<'a>(context: &ContainerContext<'_, 'a>, names: &mut HashSet<&'a str>, errors: &mut Errors) {
    let list = context.spec.field("containers");
    if list.is_empty() {
        errors.push(list.required(""));
        return;
    }
    for container in list.items() {
        common(&container, context, errors);
        unique_name(&container, names, true, errors);
        handlers::lifecycle_and_probes(&container, &context.spec, errors);
        restarts(&container, errors);
    }
    ports::conflicts(list.items(), errors);
}

fn init<'a>(context: &ContainerContext<'_, 'a>, names: &mut HashSet<&'a str>, errors: &mut Errors) {
    for container in context.spec.field("initContainers").items() {
        common(&container, context, errors);
        init_restarts(&container, errors);
        unique_name(&container, names, !container.field("name").str().is_empty(), errors);
        ports::conflicts(std::iter::once(container.clone()), errors);
        if is_sidecar(&container) {
            handlers::lifecycle_and_probes(&container, &context.spec, errors);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.field(field).is_present() {
                    let text = "may not be set for init containers without restartPolicy=Always";
                    errors.push(container.field(field).forbidden(text));
                }
            }
            forbid_restart_on_resize(&container, errors);
        }
    }
}

/// Refuses a resize that restarts the container: an init container other than a sidecar runs only once.
fn forbid_restart_on_resize(container: &Cursor<'_>, errors: &mut Errors) {
    for policy in container.field("resizePolicy").items() {
        let restart = policy.field("restartPolicy");
        if restart.str() == "RestartContainer" {
            let text = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(restart.invalid(text));
        }
    }
}

fn ephemeral<'a>(context: &ContainerContext<'_, 'a>, names: &mut HashSet<&'a str>, errors: &mut Errors) {
    let others = names.clone();
    for container in context.spec.field("ephemeralContainers").items() {
        common(&container, context, errors);
        images::image_without_padding(&container, errors);
        unique_name(&container, names, true, errors);
        let target = container.field("targetContainerName");
        if !target.str().is_empty() && !others.contains(target.str()) {
            errors.push(target.not_found());
        }
        forbid_unsupported_ephemeral_fields(&container, errors);
    }
}

fn forbid_unsupported_ephemeral_fields(container: &Cursor<'_>, errors: &mut Errors) {
    const TEXT: &str = "cannot be set for an Ephemeral Container";
    for name in [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ] {
        let field = container.field(name);
        // `resources` is no pointer in Go: an empty value counts as unset.
        if field.is_present() && (name != "resources" || !field.is_empty()) {
            errors.push(field.forbidden(TEXT));
        }
    }
    for mount in container.field("volumeMounts").items() {
        for name in ["subPath", "subPathExpr"] {
            if !mount.field(name).str().is_empty() {
                errors.push(mount.field(name).forbidden(TEXT));
            }
        }
    }
}

/// Reports a name that an earlier container has. Otherwise records the name, if `adds_name` is true.
fn unique_name<'a>(
    container: &Cursor<'a>,
    names: &mut HashSet<&'a str>,
    adds_name: bool,
    errors: &mut Errors,
) {
    let name = container.field("name");
    if names.contains(name.str()) {
        errors.push(Error::duplicate(&name.path(), name.str()));
    } else if adds_name {
        names.insert(name.str());
    }
}

fn common(container: &Cursor<'_>, context: &ContainerContext<'_, '_>, errors: &mut Errors) {
    checks::required(&container.field("name"), values::label, errors);
    checks::not_empty(&container.field("image"), errors);
    let policies = ["File", "FallbackToLogsOnError"];
    checks::required_one_of(&container.field("terminationMessagePolicy"), &policies, errors);
    ports::validate(&container.field("ports"), errors);
    env::validate(container, errors);
    mounts::validate(container, context, errors);
    checks::required_one_of(
        &container.field("imagePullPolicy"),
        &["Always", "IfNotPresent", "Never"],
        errors,
    );
    resources::validate_container(container, &context.spec, errors);
    resize_policy(container, &context.spec, errors);
    security::container(container, &context.spec, errors);
}

fn resize_policy(container: &Cursor<'_>, spec: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    let list = container.field("resizePolicy");
    let path = list.path();
    for policy in list.items() {
        let (resource, restart) = (policy.field("resourceName").str(), policy.field("restartPolicy").str());
        if !seen.insert(resource) {
            errors.push(Error::duplicate(&policy.path(), resource));
        }
        match resource {
            "cpu" | "memory" => {}
            "" => errors.push(Error::required(&path, "")),
            _ => errors.push(Error::not_supported(&path, resource, &["cpu", "memory"])),
        }
        match restart {
            "NotRequired" | "RestartContainer" => {}
            "" => errors.push(Error::required(&path, "")),
            _ => errors.push(Error::not_supported(&path, restart, &["NotRequired", "RestartContainer"])),
        }
        if spec.field("restartPolicy").str() == "Never" && restart != "NotRequired" {
            let text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(Error::invalid(&path, restart, text));
        }
    }
}

fn restarts(container: &Cursor<'_>, errors: &mut Errors) {
    restart_policy(container, errors);
    restart_rules(container, errors);
}

/// Validates the restart policy and rules of an init container. Like upstream, ignores the rules without a policy.
fn init_restarts(container: &Cursor<'_>, errors: &mut Errors) {
    restart_policy(container, errors);
    if container.field("restartPolicy").is_present() {
        restart_rules(container, errors);
    }
}

fn restart_policy(container: &Cursor<'_>, errors: &mut Errors) {
    let policy = container.field("restartPolicy");
    if policy.is_present() {
        checks::one_of(&policy, &["Always", "Never", "OnFailure"], errors);
    } else if !container.field("restartPolicyRules").is_empty() {
        errors.push(policy.required("must specify restartPolicy when restart rules are used"));
    }
}

fn restart_rules(container: &Cursor<'_>, errors: &mut Errors) {
    let rules = container.field("restartPolicyRules");
    if rules.len() > RULES_MAX {
        errors.push(Error::too_many(&rules.path(), rules.len(), RULES_MAX));
    }
    for rule in rules.items() {
        let action = rule.field("action");
        if !matches!(action.str(), "Restart" | "RestartAllContainers") {
            errors.push(action.not_supported(&["Restart", "RestartAllContainers"]));
        }
        let codes = rule.field("exitCodes");
        if !codes.is_present() {
            errors.push(codes.required("must be specified"));
            continue;
        }
        let (operator, values) = (codes.field("operator"), codes.field("values"));
        if !matches!(operator.str(), "In" | "NotIn") {
            errors.push(operator.not_supported(&["In", "NotIn"]));
        }
        if values.len() > EXIT_CODES_MAX {
            errors.push(Error::too_many(&values.path(), values.len(), EXIT_CODES_MAX));
        }
    }
}
