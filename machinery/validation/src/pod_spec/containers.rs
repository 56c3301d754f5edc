//! Containers of the three lists: what all have in common, and what each list adds.

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use super::parts::is_sidecar;
use super::scene::Scene;
use super::volumes::Volumes;
use super::{env, handlers, images, mounts, ports, resources, security};
use crate::Errors;
use crate::{checks, values};

/// Most restart rules of a container, and most exit codes of a rule.
const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;

/// Validates all three lists.
pub(super) fn validate<'a>(spec: &Cursor<'a>, volumes: &Volumes<'a>, errors: &mut Errors) {
    let scene = Scene { spec: spec.clone(), volumes };
    let mut names = HashSet::new();
    regular(&scene, &mut names, errors);
    init(&scene, &mut names, errors);
    ephemeral(&scene, &mut names, errors);
}

fn regular<'a>(scene: &Scene<'_, 'a>, names: &mut HashSet<&'a str>, errors: &mut Errors) {
    let list = scene.spec.field("containers");
    if list.is_empty() {
        errors.push(list.required(""));
        return;
    }
    for container in list.items() {
        common(&container, scene, errors);
        unique_name(&container, names, true, errors);
        handlers::lifecycle_and_probes(&container, &scene.spec, errors);
        restarts(&container, errors);
    }
    ports::conflicts(list.items(), errors);
}

fn init<'a>(scene: &Scene<'_, 'a>, names: &mut HashSet<&'a str>, errors: &mut Errors) {
    for container in scene.spec.field("initContainers").items() {
        common(&container, scene, errors);
        init_restarts(&container, errors);
        unique_name(&container, names, !container.field("name").str().is_empty(), errors);
        ports::conflicts(std::iter::once(container.clone()), errors);
        if is_sidecar(&container) {
            handlers::lifecycle_and_probes(&container, &scene.spec, errors);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.field(field).is_present() {
                    let text = "may not be set for init containers without restartPolicy=Always";
                    errors.push(container.field(field).forbidden(text));
                }
            }
            no_restarting_resize(&container, errors);
        }
    }
}

/// Only containers that keep running can be restarted to resize them.
fn no_restarting_resize(container: &Cursor<'_>, errors: &mut Errors) {
    for policy in container.field("resizePolicy").items() {
        let restart = policy.field("restartPolicy");
        if restart.str() == "RestartContainer" {
            let text = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(restart.invalid(text));
        }
    }
}

fn ephemeral<'a>(scene: &Scene<'_, 'a>, names: &mut HashSet<&'a str>, errors: &mut Errors) {
    let others = names.clone();
    for container in scene.spec.field("ephemeralContainers").items() {
        common(&container, scene, errors);
        images::image_without_padding(&container, errors);
        unique_name(&container, names, true, errors);
        let target = container.field("targetContainerName");
        if !target.str().is_empty() && !others.contains(target.str()) {
            errors.push(target.not_found());
        }
        only_what_ephemeral_containers_have(&container, errors);
    }
}

fn only_what_ephemeral_containers_have(container: &Cursor<'_>, errors: &mut Errors) {
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
        // `resources` is no pointer in Go: an empty one is not set.
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

/// Reports a name that an earlier list has; `is_taken` adds it to them.
fn unique_name<'a>(
    container: &Cursor<'a>,
    names: &mut HashSet<&'a str>,
    is_taken: bool,
    errors: &mut Errors,
) {
    let name = container.field("name");
    if names.contains(name.str()) {
        errors.push(Error::duplicate(&name.path(), name.str()));
    } else if is_taken {
        names.insert(name.str());
    }
}

fn common(container: &Cursor<'_>, scene: &Scene<'_, '_>, errors: &mut Errors) {
    checks::required(&container.field("name"), values::label, errors);
    checks::not_empty(&container.field("image"), errors);
    let policies = ["File", "FallbackToLogsOnError"];
    checks::required_one_of(&container.field("terminationMessagePolicy"), &policies, errors);
    ports::validate(&container.field("ports"), errors);
    env::validate(container, errors);
    mounts::validate(container, scene, errors);
    checks::required_one_of(
        &container.field("imagePullPolicy"),
        &["Always", "IfNotPresent", "Never"],
        errors,
    );
    resources::of_container(container, &scene.spec, errors);
    resize_policy(container, &scene.spec, errors);
    security::container(container, &scene.spec, errors);
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

/// Upstream does not validate the rules of an init container without a policy.
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
