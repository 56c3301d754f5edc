//! Validation of environment variables and their sources.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use super::parts::all_containers;
use crate::Errors;
use crate::{checks, paths, values};

const NAME: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
/// Fields of a pod that a variable may refer to.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of a pod that exist but are not supported for variables.
const OTHER_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"];
/// Resources of a container that a variable may refer to.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Validates `env` and `envFrom` of a container.
pub(super) fn validate(container: &Cursor<'_>, errors: &mut Errors) {
    for variable in container.field("env").items() {
        let name = variable.field("name");
        if checks::not_empty(&name, errors) {
            variable_name(&name, errors);
        }
        if variable.field("valueFrom").is_present() {
            value_from(&variable, errors);
        }
    }
    sources(&container.field("envFrom"), errors);
}

fn variable_name(name: &Cursor<'_>, errors: &mut Errors) {
    if !name.str().bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=') {
        errors.push(name.invalid(NAME));
    }
}

fn value_from(variable: &Cursor<'_>, errors: &mut Errors) {
    let from = variable.field("valueFrom");
    let mut sources = 0;
    let mut source = |name: &'static str, errors: &mut Errors, validate: fn(&Cursor<'_>, &mut Errors)| {
        let source = from.field(name);
        if source.is_present() {
            sources += 1;
            validate(&source, errors);
        }
    };
    source("fieldRef", errors, |field, errors| {
        field_ref(field, &ENV_FIELDS, errors);
    });
    source("resourceFieldRef", errors, |field, errors| resource_field_ref(field, false, errors));
    source("configMapKeyRef", errors, key_ref);
    source("secretKeyRef", errors, key_ref);
    source("fileKeyRef", errors, file_key_ref);
    if sources == 0 {
        let text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(Error::invalid(&from.path(), "", text));
    }
    if !variable.field("value").str().is_empty() {
        if sources > 0 {
            let text = "may not be specified when `value` is not empty";
            errors.push(Error::invalid(&from.path(), "", text));
        }
    } else if sources > 1 {
        errors.push(Error::invalid(&from.path(), "", "may not have more than one field specified at a time"));
    }
}

/// Validates a reference to a field of the pod, or to one of its labels or annotations.
pub(super) fn field_ref(field: &Cursor<'_>, supported: &[&str], errors: &mut Errors) {
    let (version, path) = (field.field("apiVersion"), field.field("fieldPath"));
    if !checks::not_empty(&version, errors) || !checks::not_empty(&path, errors) {
        return;
    }
    let label = path.str();
    let converted = match (version.str(), split_subscript(label)) {
        (other, _) if other != "v1" => Err(format!("unsupported pod version: {other}")),
        (_, Some(("metadata.annotations", key))) => return qualified(field, &key.to_lowercase(), errors),
        (_, Some(("metadata.labels", key))) => return qualified(field, key, errors),
        (_, Some(_)) => Err(format!("field label does not support subscript: {label}")),
        // Old name of the field.
        (_, None) if label == "spec.host" => Ok("spec.nodeName"),
        (_, None) if ENV_FIELDS.contains(&label) || OTHER_FIELDS.contains(&label) => Ok(label),
        (_, None) => Err(format!("field label not supported: {label}")),
    };
    match converted {
        Err(text) => errors.push(path.invalid(&format!("error converting fieldPath: {text}"))),
        Ok(name) if !supported.contains(&name) => {
            errors.push(Error::not_supported(&path.path(), name, supported));
        }
        Ok(_) => {}
    }
}

/// Validates the key of a label or annotation. Errors have the path of the reference.
fn qualified(field: &Cursor<'_>, key: &str, errors: &mut Errors) {
    errors.extend(names::to_field_errors(&field.path(), key, names::qualified_name(key)));
}

/// Splits `map['key']` into the map and the key.
fn split_subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']").and_then(|path| path.split_once("['")).filter(|(map, _)| !map.is_empty())
}

/// Validates a reference to a resource of a container; in a volume it must name the container.
pub(super) fn resource_field_ref(field: &Cursor<'_>, in_volume: bool, errors: &mut Errors) {
    let (container, resource) = (field.field("containerName"), field.field("resource"));
    let name = resource.str();
    let huge = name.starts_with("limits.hugepages-") || name.starts_with("requests.hugepages-");
    if in_volume && container.str().is_empty() {
        errors.push(container.required(""));
    } else if checks::not_empty(&resource, errors) && !huge && !RESOURCES.contains(&name) {
        errors.push(resource.not_supported(&RESOURCES));
    }
    divisor(&field.field("divisor"), name, errors);
}

fn divisor(divisor: &Cursor<'_>, resource: &str, errors: &mut Errors) {
    const CPU: [&str; 2] = ["1m", "1"];
    const SIZES: [&str; 13] =
        ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let Some(value) = divisor.quantity().filter(|value| !value.is_zero()) else { return };
    let name = ["limits.", "requests."].iter().find_map(|list| resource.strip_prefix(list));
    let (divisors, text): (&[&str], _) = match name.unwrap_or_default() {
        "cpu" => (&CPU, "only divisor's values 1m and 1 are supported with the cpu resource"),
        "memory" => (
            &SIZES,
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource",
        ),
        "ephemeral-storage" => (
            &SIZES,
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the local ephemeral storage resource",
        ),
        name if name.starts_with("hugepages-") => (
            &SIZES,
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the hugepages resource",
        ),
        _ => return,
    };
    if !divisors.contains(&value.to_string().as_str()) {
        // Upstream prints the name of the resource, not the divisor.
        errors.push(Error::invalid(&divisor.path(), resource, text));
    }
}

/// Validates a reference to a key of a ConfigMap or Secret.
fn key_ref(reference: &Cursor<'_>, errors: &mut Errors) {
    checks::matches_rule(&reference.field("name"), names::dns1123_subdomain, errors);
    let key = reference.field("key");
    if checks::not_empty(&key, errors) {
        let diagnostics = values::config_key(key.str());
        errors.extend(diagnostics.iter().map(|m| Error::invalid(&key.path(), key.str(), m)));
    }
}

/// Validates a reference to a variable in a file of a volume.
fn file_key_ref(reference: &Cursor<'_>, errors: &mut Errors) {
    let (key, path) = (reference.field("key"), reference.field("path"));
    if checks::not_empty(&key, errors) {
        variable_name(&key, errors);
    }
    checks::required(&reference.field("volumeName"), values::label, errors);
    if checks::not_empty(&path, errors) {
        paths::no_parent_reference(&path, &path.path(), errors);
    }
}

/// Validates references to whole ConfigMaps and Secrets. Errors about the number of sources have the path of the list.
fn sources(list: &Cursor<'_>, errors: &mut Errors) {
    for source in list.items() {
        let prefix = source.field("prefix");
        if !prefix.str().is_empty() && !prefix.str().bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=')
        {
            errors.push(prefix.invalid(NAME));
        }
        let mut count = 0;
        for name in ["configMapRef", "secretRef"] {
            let reference = source.field(name);
            if !reference.is_present() {
                continue;
            }
            count += 1;
            let name = reference.field("name");
            if checks::not_empty(&name, errors) {
                // Upstream accepts a prefix of a generated name, which may end with a dash.
                let diagnostics = names::dns1123_subdomain(&values::masked_prefix(name.str()));
                errors.extend(names::to_field_errors(&name.path(), name.str(), diagnostics));
            }
        }
        let text = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(Error::invalid(&list.path(), "", text));
    }
}

/// Requires that the volumes of variable files exist in the pod and are of type `emptyDir`.
pub(super) fn file_volumes(spec: &Cursor<'_>, errors: &mut Errors) {
    for container in all_containers(spec) {
        for variable in container.field("env").items() {
            let reference = variable.field("valueFrom").field("fileKeyRef");
            let volume_name = reference.field("volumeName");
            if !reference.is_present() {
                continue;
            }
            let volumes = spec.field("volumes");
            match volumes.items().find(|volume| volume.field("name").str() == volume_name.str()) {
                None => errors.push(volume_name.not_found()),
                Some(volume) if volume.field("emptyDir").is_present() => {}
                Some(_) => errors.push(volume_name.invalid("referenced volume must be of type emptyDir")),
            }
        }
    }
}
