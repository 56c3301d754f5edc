//! PodSecurity: what a namespace's labels say that pods may be, enforced on pods, told to whoever writes their templates.
//!
//! Upstream rules: k8s.io/pod-security-admission, with its defaults: everything is privileged unless labels say otherwise,
//! and nothing is exempt. What only the audit log would get is not looked at.

mod checks;
mod containers;
mod pods;
mod policy;
mod violation;
mod volumes;

use std::collections::{BTreeMap, HashSet};

use portico_machinery::{Cursor, GroupResource, Object, Status};

use crate::plugin::{Plugin, Target, Validating, ValidationRequest, all_in};
use checks::violations;
use policy::{Level, Policy, Standard};
use portico_registry::Objects;
use portico_registry::Result;
use violation::Pod;

/// Most existing pods that are looked at when a namespace becomes stricter.
const MAX_PODS: usize = 3_000;

pub(super) struct PodSecurity;

impl Plugin for PodSecurity {
    fn targets(&self) -> &'static [Target] {
        &[
            ("", "namespaces", ""),
            ("", "pods", ""),
            ("", "pods", "ephemeralcontainers"),
            ("", "podtemplates", ""),
            ("", "replicationcontrollers", ""),
            ("apps", "replicasets", ""),
            ("apps", "deployments", ""),
            ("apps", "statefulsets", ""),
            ("apps", "daemonsets", ""),
            ("batch", "jobs", ""),
            ("batch", "cronjobs", ""),
        ]
    }

    fn validate<'a>(&'a self, objects: &'a Objects, request: ValidationRequest<'a>) -> Validating<'a> {
        Box::pin(async move {
            match request.attributes.served.resource.resource.as_str() {
                "namespaces" => namespace(objects, request).await,
                "pods" => pod(objects, request).await,
                resource => template(objects, request, template_path(resource)).await,
            }
        })
    }
}

/// Where a kind has the template of its pods.
fn template_path(resource: &str) -> &'static [&'static str] {
    match resource {
        "podtemplates" => &["template"],
        "cronjobs" => &["spec", "jobTemplate", "spec", "template"],
        _ => &["spec", "template"],
    }
}

async fn policy_of(objects: &Objects, namespace: &str) -> Result<Policy> {
    match objects.object_of("", "namespaces", "", namespace).await? {
        Some(namespace) => Ok(Policy::read(&namespace).0),
        None => Err(Box::new(Status::internal(format!("failed to lookup namespace {namespace:?}")))),
    }
}

/// Labels must be readable; a stricter namespace warns of the pods that are there.
async fn namespace(objects: &Objects, request: ValidationRequest<'_>) -> Result<Vec<String>> {
    let (new, old) = (request.new, request.old);
    let (policy, errors) = Policy::read(new);
    let (before, errors_before) = match old {
        Some(old) => Policy::read(old),
        None => (policy, Vec::new()),
    };
    if !errors.is_empty() && errors != errors_before {
        let kind = request.attributes.served.stored_info().group_kind();
        return Err(Box::new(Status::invalid(&kind, new.name(), &errors)));
    }
    let (now, was) = (policy.enforce, before.enforce);
    let relaxed = now.version == was.version && now.level <= was.level;
    if old.is_none() || now.level == Level::Privileged || relaxed {
        return Ok(Vec::new());
    }
    let pods = all_in(objects, new.name(), &GroupResource::new("", "pods")).await?;
    Ok(existing(new.name(), now, &pods))
}

async fn pod(objects: &Objects, request: ValidationRequest<'_>) -> Result<Vec<String>> {
    let (new, old) = (request.new, request.old);
    if old.is_some_and(|old| !is_significant(&new.at(&["spec"]), &old.at(&["spec"]))) {
        return Ok(Vec::new());
    }
    let policy = policy_of(objects, new.namespace()).await?;
    let pod = Pod::of(new.cursor());
    let forbidden = violations(policy.enforce, &pod);
    if !forbidden.is_empty() {
        let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, checks::detailed(&forbidden));
        return Err(request.forbidden(&why));
    }
    Ok(warning(policy.warn, &pod))
}

async fn template(objects: &Objects, request: ValidationRequest<'_>, path: &[&str]) -> Result<Vec<String>> {
    let template = request.new.at(path);
    if !template.is_present() {
        return Ok(Vec::new());
    }
    let policy = policy_of(objects, request.new.namespace()).await?;
    Ok(warning(policy.warn, &Pod::of(template)))
}

fn warning(standard: Standard, pod: &Pod<'_>) -> Vec<String> {
    let found = violations(standard, pod);
    if found.is_empty() {
        return Vec::new();
    }
    vec![format!("would violate PodSecurity \"{standard}\": {}", checks::detailed(&found))]
}

/// Whether a change of a pod's spec has to be looked at: containers came, went, or run another image.
fn is_significant(new: &Cursor<'_>, old: &Cursor<'_>) -> bool {
    let before: BTreeMap<_, _> = images(old, "ephemeralContainers").into_iter().collect();
    let mut ephemeral = images(new, "ephemeralContainers").into_iter();
    ["containers", "initContainers"].iter().any(|list| images(new, list) != images(old, list))
        || ephemeral.any(|(name, image)| before.get(&name) != Some(&image))
}

/// Names and images of a list of containers.
fn images(spec: &Cursor<'_>, list: &str) -> Vec<(String, String)> {
    let said = |container: &Cursor<'_>, field: &str| container.field(field).str().to_owned();
    spec.field(list).items().map(|c| (said(&c, "name"), said(&c, "image"))).collect()
}

/// What is said of the pods of a namespace that becomes stricter: one line for each kind of violation.
fn existing(namespace: &str, standard: Standard, pods: &[Object]) -> Vec<String> {
    let first = by_controller(pods);
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in first.iter().take(MAX_PODS) {
        let violations = violations(standard, &Pod::of(pod.cursor()));
        if !violations.is_empty() {
            found.entry(checks::brief(&violations)).or_default().push(pod.name());
        }
    }
    let mut warnings = Vec::new();
    if first.len() > MAX_PODS {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_PODS} of {} existing pods",
            first.len()
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{standard}\""
        ));
    }
    let mut lines: Vec<String> = found
        .into_iter()
        .map(|(what, names)| {
            let name = names.iter().min().copied().unwrap_or_default();
            match names.len() {
                1 => format!("{name}: {what}"),
                2 => format!("{name} (and 1 other pod): {what}"),
                all => format!("{name} (and {} other pods): {what}", all - 1),
            }
        })
        .collect();
    lines.sort_unstable();
    warnings.extend(lines);
    warnings
}

/// One pod of each controller first, the rest of theirs last.
fn by_controller(pods: &[Object]) -> Vec<&Object> {
    let mut seen = HashSet::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for pod in pods {
        let owners = pod.owner_references();
        let controller = owners.iter().find(|owner| owner.controller == Some(true));
        match controller {
            Some(controller) if !seen.insert(controller.uid.clone()) => rest.push(pod),
            _ => first.push(pod),
        }
    }
    first.append(&mut rest);
    first
}
