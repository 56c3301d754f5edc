//! Warnings for a pod or a pod template, in upstream's order.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use portico_machinery::field::Path;
use portico_machinery::{Cursor, names};

use super::annotations::{APPARMOR, SECCOMP_CONTAINER, SECCOMP_POD};
use super::parts::all_containers;
use crate::{node_labels, values};

const CRITICAL: &str = "scheduler.alpha.kubernetes.io/critical-pod";
const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// Limit of pairwise comparisons and of their warnings. A response contains only a few of these warnings, and a request body
/// could cause millions of comparisons.
const MAX_PAIRWISE: usize = 256;
/// Volume sources that cause a warning, in upstream's order. The claim of an ephemeral volume has its own warnings.
const OLD_SOURCES: [(&str, &str); 10] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("ephemeral", ""),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Returns the warnings for a pod (cursor at the pod itself).
pub fn pod_warnings(pod: &Cursor<'_>) -> Vec<String> {
    collect_warnings(pod, false)
}

/// Returns the warnings for the `metadata` and `spec` at a cursor. For pods, upstream reports AppArmor annotations separately.
pub(super) fn collect_warnings(holder: &Cursor<'_>, is_template: bool) -> Vec<String> {
    let (spec, annotations) = (holder.field("spec"), holder.field("metadata").field("annotations"));
    let mut warnings = Vec::new();
    node_labels(&spec, &mut warnings);
    node_affinity(&spec, &mut warnings);
    spread(&spec, &mut warnings);
    old_annotations(&annotations, &mut warnings);
    volumes(&spec, &mut warnings);
    duplicates(&spec, &mut warnings);
    fractions(&spec, &mut warnings);
    if !spec.field("securityContext").field("seccompProfile").is_present() {
        old_annotation(&annotations, SECCOMP_POD, SECCOMP, &mut warnings);
    }
    for container in all_containers(&spec) {
        profiles(&container, &spec, &annotations, is_template, &mut warnings);
        resources(&container, &mut warnings);
        hidden_variables(&container, &mut warnings);
    }
    ambiguous_ports(&spec, &mut warnings);
    port_names(&spec, &mut warnings);
    let grace = spec.field("terminationGracePeriodSeconds");
    if grace.i64().is_some_and(|seconds| seconds < 0) {
        let text = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{}: {text}", grace.path()));
    }
    pod_affinity(&spec, &mut warnings);
    addresses(&spec, &mut warnings);
    warnings
}

fn node_labels(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    let mut keys: Vec<_> = spec.field("nodeSelector").entries().collect();
    keys.sort_unstable_by_key(|(key, _)| *key);
    for (key, at) in keys {
        warnings.extend(node_labels::deprecation(key).map(|text| format!("{}: {text}", at.path())));
    }
}

fn node_affinity(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    let nodes = spec.field("affinity").field("nodeAffinity");
    for term in nodes.field(REQUIRED).field("nodeSelectorTerms").items() {
        node_term(&term, false, warnings);
    }
    for term in nodes.field(PREFERRED).items() {
        node_term(&term.field("preference"), true, warnings);
    }
}

fn pod_affinity(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = spec.field("affinity").field(kind);
        pods.field(REQUIRED).items().for_each(|term| null_selector(&term, warnings));
        for term in pods.field(PREFERRED).items() {
            null_selector(&term.field("podAffinityTerm"), warnings);
        }
    }
}

/// Adds the warnings for one term of a node selector.
pub fn node_term(term: &Cursor<'_>, validate_values: bool, warnings: &mut Vec<String>) {
    for requirement in term.field("matchExpressions").items() {
        let key = requirement.field("key");
        warnings.extend(
            node_labels::deprecation(key.str())
                .map(|text| format!("{}: {} is {text}", key.path(), key.str())),
        );
        for value in requirement.field("values").items().filter(|_| validate_values) {
            for text in names::label_value(value.str()) {
                warnings.push(format!("{}: {} is invalid, {text}", value.path(), value.str()));
            }
        }
    }
}

fn topology_key(at: &Cursor<'_>, warnings: &mut Vec<String>) {
    let key = at.field("topologyKey");
    warnings.extend(
        node_labels::deprecation(key.str()).map(|text| format!("{}: {} is {text}", key.path(), key.str())),
    );
}

fn null_selector(at: &Cursor<'_>, warnings: &mut Vec<String>) {
    let selector = at.field("labelSelector");
    if !selector.is_present() {
        warnings.push(format!("{}: a null labelSelector results in matching no pod", selector.path()));
    }
}

fn spread(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    for constraint in spec.field("topologySpreadConstraints").items() {
        topology_key(&constraint, warnings);
        null_selector(&constraint, warnings);
    }
}

fn old_annotation(annotations: &Cursor<'_>, key: &str, text: &str, warnings: &mut Vec<String>) {
    if annotations.entry_str(key).is_some() {
        warnings.push(format!("{}: {text}", annotations.path().key(key)));
    }
}

fn old_annotations(annotations: &Cursor<'_>, warnings: &mut Vec<String>) {
    const SYSCTLS: &str = "non-functional in v1.11+; use the \"sysctls\" field instead";
    let critical = "non-functional in v1.16+; use the \"priorityClassName\" field instead";
    old_annotation(annotations, CRITICAL, critical, warnings);
    for key in ["security.alpha.kubernetes.io/sysctls", "security.alpha.kubernetes.io/unsafe-sysctls"] {
        old_annotation(annotations, key, SYSCTLS, warnings);
    }
}

/// Warns about profile annotations of containers that do not set the field.
fn profiles(
    container: &Cursor<'_>,
    spec: &Cursor<'_>,
    annotations: &Cursor<'_>,
    is_template: bool,
    warnings: &mut Vec<String>,
) {
    let (name, context) = (container.field("name").str(), container.field("securityContext"));
    if !context.field("seccompProfile").is_present() {
        old_annotation(annotations, &format!("{SECCOMP_CONTAINER}{name}"), SECCOMP, warnings);
    }
    if !is_template || context.field("appArmorProfile").is_present() {
        return;
    }
    let key = format!("{APPARMOR}{name}");
    let pod_profile = spec.field("securityContext").field("appArmorProfile");
    if !annotations.entry_str(&key).is_some_and(|annotation| is_profile(&pod_profile, annotation)) {
        let text = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        old_annotation(annotations, &key, text, warnings);
    }
}

/// True if the field and the annotation contain the same AppArmor profile.
fn is_profile(field: &Cursor<'_>, annotation: &str) -> bool {
    let (kind, local) = match annotation.strip_prefix("localhost/") {
        Some(local) => ("Localhost", Some(local)),
        None if annotation == "unconfined" => ("Unconfined", None),
        None if annotation == "runtime/default" => ("RuntimeDefault", None),
        None => return false,
    };
    field.field("type").str() == kind && field.field("localhostProfile").opt_str() == local
}

fn volumes(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    for volume in spec.field("volumes").items() {
        for (field, text) in OLD_SOURCES {
            let source = volume.field(field);
            if !source.is_present() {
                continue;
            }
            if field == "ephemeral" {
                warnings.extend(claim_spec_warnings(&source.field("volumeClaimTemplate").field("spec")));
            } else {
                let display_name = if field == "storageos" { "storageOS" } else { field };
                warnings.push(format!("{}: {text}", volume.path().child(display_name)));
            }
        }
    }
    spec.field("volumes").items().for_each(|volume| overlapping_paths(&volume, warnings));
}

/// Warns about storage that is not a whole number of bytes.
pub fn claim_spec_warnings(spec: &Cursor<'_>) -> Vec<String> {
    let resources = spec.field("resources");
    let mut warnings = Vec::new();
    for list in ["requests", "limits"] {
        fractional_bytes(&resources.field(list), "storage", &mut warnings);
    }
    warnings
}

/// Returns the paths of the files of a source, each with `source_name`, the description of the source.
fn paths_of(source: &Cursor<'_>, source_name: &str) -> Vec<(String, String)> {
    source
        .field("items")
        .items()
        .map(|i| (i.field("path").str().to_owned(), source_name.to_owned()))
        .collect()
}

fn overlapping_paths(volume: &Cursor<'_>, warnings: &mut Vec<String>) {
    let name = volume.field("name").str();
    for (field, key, word) in [
        ("configMap", "name", "ConfigMap"),
        ("secret", "secretName", "Secret"),
        ("downwardAPI", "", "DownwardAPI"),
    ] {
        let source = volume.field(field);
        if source.is_present() {
            let source_name = if key.is_empty() {
                word.to_owned()
            } else {
                format!("{word} {:?}", source.field(key).str())
            };
            let paths: Vec<(String, String)> = paths_of(&source, "");
            warn_of_overlaps(&format!("volume {name:?} ({source_name})"), &paths, warnings);
        }
    }
    let projected = volume.field("projected");
    if !projected.is_present() {
        return;
    }
    let source_name = format!("volume {name:?} (Projected)");
    let empty = |source: &Cursor<'_>| !source.entries().any(|(_, value)| value.is_present());
    for _ in projected.field("sources").items().filter(empty) {
        warnings.push(format!("{source_name} has no sources provided"));
    }
    warn_of_overlaps(&source_name, &projected_paths(&projected), warnings);
}

fn projected_paths(projected: &Cursor<'_>) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    for source in projected.field("sources").items() {
        for (field, word) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
            let part = source.field(field);
            paths.extend(paths_of(&part, &format!(" ({word} {:?})", part.field("name").str())));
        }
        paths.extend(paths_of(&source.field("downwardAPI"), " (DownwardAPI)"));
        let token = source.field("serviceAccountToken");
        if token.is_present() {
            paths.push((token.field("path").str().to_owned(), " (ServiceAccountToken)".to_owned()));
        }
    }
    paths
}

fn warn_of_overlaps(source_name: &str, paths: &[(String, String)], warnings: &mut Vec<String>) {
    // The set is ordered: only neighbors of a path are compared, not all pairs.
    let mut seen: BTreeSet<(&str, usize)> = BTreeSet::new();
    for (at, (path, owner)) in paths.iter().enumerate() {
        let trimmed = path.trim_end_matches('/');
        let ends = trimmed.match_indices('/').map(|(end, _)| end).chain([trimmed.len()]);
        let above = ends.flat_map(|end| seen.range((&trimmed[..end], 0)..=(&trimmed[..end], usize::MAX)));
        let folder = format!("{trimmed}/");
        let below = seen.range((folder.as_str(), 0)..).take_while(|(other, _)| other.starts_with(&folder));
        let mut earlier: Vec<usize> = above.chain(below).map(|(_, at)| *at).take(MAX_PAIRWISE).collect();
        if trimmed.is_empty() {
            continue;
        }
        earlier.sort_unstable();
        for other in earlier.iter().map(|at| &paths[*at]) {
            if warnings.len() < MAX_PAIRWISE {
                let (path, other_owner) = (other.0.trim_end_matches('/'), &other.1);
                warnings.push(format!(
                    "{source_name}: overlapping paths: {trimmed:?}{owner} with {path:?}{other_owner}"
                ));
            }
        }
        seen.insert((trimmed, at));
    }
}

fn duplicates(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for alias in spec.field("hostAliases").items() {
        let ip = alias.field("ip");
        if !seen.insert(ip.str()) {
            warnings.push(format!("{}: duplicate ip {:?}", ip.path(), ip.str()));
        }
    }
    let secrets = spec.field("imagePullSecrets");
    let mut seen = HashSet::new();
    for secret in secrets.items() {
        let name = secret.field("name");
        if !seen.insert(name.str()) {
            warnings.push(format!("{}: duplicate name {:?}", name.path(), name.str()));
        }
    }
    for secret in secrets.items().filter(|secret| secret.field("name").str().is_empty()) {
        warnings.push(format!("{}: invalid empty name \"\"", secret.field("name").path()));
    }
}

/// Warns about a number of bytes that is not whole.
pub fn fractional_bytes(list: &Cursor<'_>, name: &str, warnings: &mut Vec<String>) {
    let at = list.key(name);
    if let Some(quantity) = at.quantity().filter(|quantity| !quantity.is_whole()) {
        let text = quantity.to_string();
        warnings
            .push(format!("{}: fractional byte value {text:?} is invalid, must be an integer", at.path()));
    }
}

fn fractions(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        fractional_bytes(&spec.field("overhead"), name, warnings);
    }
}

fn resources(container: &Cursor<'_>, warnings: &mut Vec<String>) {
    let resources = container.field("resources");
    for name in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            fractional_bytes(&resources.field(list), name, warnings);
        }
    }
}

fn hidden_variables(container: &Cursor<'_>, warnings: &mut Vec<String>) {
    let mut seen: HashSet<&str> = HashSet::new();
    for variable in container.field("env").items() {
        let (name, value) = (variable.field("name").str(), variable.field("value").str());
        let reference = format!("$({name})");
        let uses_it =
            value.contains(&reference) && value != reference && !variable.field("valueFrom").is_present();
        if !seen.insert(name) && !uses_it {
            warnings.push(format!(
                "{}: hides previous definition of {name:?}, which may be dropped when using apply",
                variable.path()
            ));
        }
    }
}

/// Warns about equal or ambiguous ports in all containers.
fn ambiguous_ports(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    let mut by_container_port: HashMap<(i64, &str), Vec<HostPort<'_>>> = HashMap::new();
    let ports = all_containers(spec).into_iter().flat_map(|container| container.field("ports").items());
    for at in ports {
        let port =
            HostPort { number: number(&at, "hostPort"), ip: at.field("hostIP").str(), path: at.path() };
        if !port.ip.is_empty() && port.number == 0 {
            warnings.push(format!("{}: hostIP set without hostPort: {}", port.path, go_port(&at)));
        }
        let earlier_ports =
            by_container_port.entry((number(&at, "containerPort"), at.field("protocol").str())).or_default();
        for other in earlier_ports.iter() {
            if warnings.len() >= MAX_PAIRWISE {
                break;
            }
            if let Some(words) = port.conflict(other) {
                warnings.push(format!("{}: {words} port definition with {}", port.path, other.path));
            }
        }
        earlier_ports.push(port);
    }
}

/// Host address and host port of a container port.
struct HostPort<'a> {
    number: i64,
    ip: &'a str,
    path: Path,
}

impl HostPort<'_> {
    fn conflict(&self, other: &Self) -> Option<&'static str> {
        if (self.number, self.ip) == (other.number, other.ip) {
            Some("duplicate")
        } else if self.number == 0 || other.number == 0 {
            Some("overlapping")
        } else if self.number == other.number && (self.ip.is_empty() != other.ip.is_empty()) {
            Some("dangerously ambiguous")
        } else {
            None
        }
    }
}

fn number(port: &Cursor<'_>, field: &str) -> i64 {
    port.field(field).i64().unwrap_or(0)
}

/// Formats a port as Go prints the struct.
fn go_port(port: &Cursor<'_>) -> String {
    let text = |field| port.field(field).str();
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text("name"),
        number(port, "hostPort"),
        number(port, "containerPort"),
        text("protocol"),
        text("hostIP")
    )
}

fn port_names(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    let mut first: BTreeMap<&str, Path> = BTreeMap::new();
    for port in all_containers(spec).into_iter().flat_map(|container| container.field("ports").items()) {
        let name = port.field("name");
        if name.str().is_empty() {
            continue;
        }
        if let Some(earlier) = first.get(name.str()) {
            warnings.push(format!(
                "{}: duplicate port name {:?} with {earlier}, services and probes that select ports by name will use {earlier}",
                port.path(),
                name.str()
            ));
        } else {
            first.insert(name.str(), port.path());
        }
    }
}

fn addresses(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    for server in spec.field("dnsConfig").field("nameservers").items() {
        warnings.extend(values::ip_warning(&server));
    }
    for alias in spec.field("hostAliases").items() {
        warnings.extend(values::ip_warning(&alias.field("ip")));
    }
}
