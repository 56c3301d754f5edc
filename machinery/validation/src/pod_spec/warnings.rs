//! Warnings for whoever writes a pod or a template of pods, in upstream's order.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use portico_machinery::field::Path;
use portico_machinery::{Cursor, names};

use super::annotations::{SECCOMP_CONTAINER, SECCOMP_POD};
use super::parts::{Of, all_containers};
use crate::{node_labels, values};

const CRITICAL: &str = "scheduler.alpha.kubernetes.io/critical-pod";
const PREFER_AVOID: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// Where comparing one with each earlier one ends: an answer holds a few of these warnings at most, and a body could ask for
/// millions of comparisons.
const ENOUGH: usize = 256;
/// Sources of volumes that do nothing any more.
const OLD_SOURCES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Warnings of a pod (a cursor at the pod itself).
pub fn pod_warnings(pod: &Cursor<'_>) -> Vec<String> {
    of(pod, Of::Pod)
}

/// Warnings of a cursor at `metadata` and `spec`.
pub(super) fn of(holder: &Cursor<'_>, of: Of) -> Vec<String> {
    let (spec, metadata) = (holder.field("spec"), holder.field("metadata"));
    let mut warnings = Vec::new();
    node_labels(&spec, &mut warnings);
    affinity(&spec, &mut warnings);
    spread(&spec, &mut warnings);
    annotations(&metadata.field("annotations"), &spec, &mut warnings);
    volumes(&spec, &mut warnings);
    duplicates(&spec, &mut warnings);
    fractions(&spec, &mut warnings);
    containers(&spec, &mut warnings);
    port_names(&spec, &mut warnings);
    let grace = spec.field("terminationGracePeriodSeconds");
    if of == Of::Template && grace.i64().is_some_and(|seconds| seconds < 0) {
        let text = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{}: {text}", grace.path()));
    }
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

fn affinity(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    let affinity = spec.field("affinity");
    let nodes = affinity.field("nodeAffinity");
    for term in nodes.field(REQUIRED).field("nodeSelectorTerms").items() {
        node_term(&term, false, warnings);
    }
    for term in nodes.field(PREFERRED).items() {
        node_term(&term.field("preference"), true, warnings);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.field(kind);
        pods.field(REQUIRED).items().for_each(|term| pod_term(&term, warnings));
        for term in pods.field(PREFERRED).items() {
            pod_term(&term.field("podAffinityTerm"), warnings);
        }
    }
}

/// Warnings of one term of a node selector.
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

fn pod_term(term: &Cursor<'_>, warnings: &mut Vec<String>) {
    topology_key(term, warnings);
    null_selector(term, warnings);
}

fn spread(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    for constraint in spec.field("topologySpreadConstraints").items() {
        topology_key(&constraint, warnings);
        null_selector(&constraint, warnings);
    }
}

fn annotations(annotations: &Cursor<'_>, spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    let has = |key: &str| annotations.entry_str(key).is_some();
    let mut warn = |key: &str, text: &str| {
        warnings.push(format!("{}: {text}", annotations.path().key(key)));
    };
    if let Some(text) = node_labels::deprecation(PREFER_AVOID).filter(|_| has(PREFER_AVOID)) {
        warn(PREFER_AVOID, text);
    }
    if has(CRITICAL) {
        warn(CRITICAL, "non-functional in v1.16+; use the \"priorityClassName\" field instead");
    }
    for key in ["security.alpha.kubernetes.io/sysctls", "security.alpha.kubernetes.io/unsafe-sysctls"] {
        if has(key) {
            warn(key, "non-functional in v1.11+; use the \"sysctls\" field instead");
        }
    }
    const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    if has(SECCOMP_POD) && !spec.field("securityContext").field("seccompProfile").is_present() {
        warn(SECCOMP_POD, SECCOMP);
    }
    for container in all_containers(spec) {
        let key = format!("{SECCOMP_CONTAINER}{}", container.field("name").str());
        if has(&key) && !container.field("securityContext").field("seccompProfile").is_present() {
            warn(&key, SECCOMP);
        }
    }
}

fn volumes(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    for volume in spec.field("volumes").items() {
        for (field, text) in OLD_SOURCES {
            if volume.field(field).is_present() {
                let shown = if field == "storageos" { "storageOS" } else { field };
                warnings.push(format!("{}: {text}", volume.path().child(shown)));
            }
        }
        let template = volume.field("ephemeral").field("volumeClaimTemplate");
        if template.is_present() {
            warnings.extend(claim_spec_warnings(&template.field("spec")));
        }
        overlapping_paths(&volume, warnings);
    }
}

/// Storage that is no whole number of bytes.
pub fn claim_spec_warnings(spec: &Cursor<'_>) -> Vec<String> {
    let resources = spec.field("resources");
    let mut warnings = Vec::new();
    for list in ["requests", "limits"] {
        fractional_bytes(&resources.field(list), "storage", &mut warnings);
    }
    warnings
}

/// The paths of a source's files, with who puts them there.
fn paths_of(source: &Cursor<'_>, who: &str) -> Vec<(String, String)> {
    source.field("items").items().map(|i| (i.field("path").str().to_owned(), who.to_owned())).collect()
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
            let who = if key.is_empty() {
                word.to_owned()
            } else {
                format!("{word} {:?}", source.field(key).str())
            };
            let paths: Vec<(String, String)> = paths_of(&source, "");
            warn_of_overlaps(&format!("volume {name:?} ({who})"), &paths, warnings);
        }
    }
    let projected = volume.field("projected");
    if !projected.is_present() {
        return;
    }
    let who = format!("volume {name:?} (Projected)");
    if projected.field("sources").is_empty() {
        warnings.push(format!("{who} has no sources provided"));
    }
    warn_of_overlaps(&who, &projected_paths(&projected), warnings);
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

fn warn_of_overlaps(who: &str, paths: &[(String, String)], warnings: &mut Vec<String>) {
    // What is below a path follows it closely in this order, so that not every path is held against every other.
    let mut seen: BTreeSet<(&str, usize)> = BTreeSet::new();
    for (at, (path, owner)) in paths.iter().enumerate() {
        let here = path.trim_end_matches('/');
        let ends = here.match_indices('/').map(|(end, _)| end).chain([here.len()]);
        let above = ends.flat_map(|end| seen.range((&here[..end], 0)..=(&here[..end], usize::MAX)));
        let folder = format!("{here}/");
        let below = seen.range((folder.as_str(), 0)..).take_while(|(other, _)| other.starts_with(&folder));
        let mut earlier: Vec<usize> = above.chain(below).map(|(_, at)| *at).take(ENOUGH).collect();
        if !earlier.is_empty() && warnings.len() < ENOUGH {
            earlier.sort_unstable();
            let earlier = earlier.into_iter().map(|at| format!("{:?}{}", paths[at].0, paths[at].1));
            let earlier = earlier.collect::<Vec<_>>().join(", ");
            warnings.push(format!("{who}: overlapping paths: {path:?}{owner} with {earlier}"));
        }
        seen.insert((here, at));
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
    let mut seen = HashSet::new();
    for secret in spec.field("imagePullSecrets").items() {
        let name = secret.field("name");
        if name.str().is_empty() {
            warnings.push(format!("{}: invalid empty name \"\"", name.path()));
        } else if !seen.insert(name.str()) {
            warnings.push(format!("{}: duplicate name {:?}", name.path(), name.str()));
        }
    }
}

/// A number of bytes that is no whole one.
pub fn fractional_bytes(list: &Cursor<'_>, name: &str, warnings: &mut Vec<String>) {
    let at = list.key(name);
    if let Some(quantity) = at.quantity().filter(|quantity| !quantity.is_whole()) {
        let shown = quantity.to_string();
        warnings
            .push(format!("{}: fractional byte value {shown:?} is invalid, must be an integer", at.path()));
    }
}

fn fractions(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        fractional_bytes(&spec.field("overhead"), name, warnings);
    }
}

fn containers(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    for container in all_containers(spec) {
        let resources = container.field("resources");
        for name in ["memory", "ephemeral-storage"] {
            for list in ["limits", "requests"] {
                fractional_bytes(&resources.field(list), name, warnings);
            }
        }
        hidden_variables(&container, warnings);
        ambiguous_ports(&container, warnings);
    }
}

fn hidden_variables(container: &Cursor<'_>, warnings: &mut Vec<String>) {
    let mut seen: HashSet<&str> = HashSet::new();
    for variable in container.field("env").items() {
        let (name, value) = (variable.field("name").str(), variable.field("value").str());
        let reference = format!("$({name})");
        let uses_it = value.contains(&reference) && value != reference;
        if !seen.insert(name) && !uses_it {
            warnings.push(format!(
                "{}: hides previous definition of {name:?}, which may be dropped when using apply",
                variable.path()
            ));
        }
    }
}

fn ambiguous_ports(container: &Cursor<'_>, warnings: &mut Vec<String>) {
    let mut alike: HashMap<(Option<i64>, &str), Vec<Cursor<'_>>> = HashMap::new();
    for port in container.field("ports").items() {
        let host_ip = port.field("hostIP").str();
        if !host_ip.is_empty() && port.field("hostPort").i64().unwrap_or(0) == 0 {
            warnings.push(format!("{}: hostIP set without hostPort: {}", port.path(), port.printed()));
        }
        let others =
            alike.entry((port.field("containerPort").i64(), port.field("protocol").str())).or_default();
        for other in others.iter() {
            if warnings.len() >= ENOUGH {
                break;
            }
            let same = |field: &str| port.field(field).same_as(&other.field(field));
            let set = |at: &Cursor<'_>| {
                [at.field("hostPort").i64().unwrap_or(0) != 0, !at.field("hostIP").str().is_empty()]
            };
            let [[port_here, ip_here], [port_there, ip_there]] = [set(&port), set(other)];
            let apart = (!same("hostPort") && port_here && port_there)
                || (same("hostPort") && !same("hostIP") && ip_here && ip_there);
            let word = match (same("hostPort"), same("hostIP")) {
                _ if apart => continue,
                (true, true) => "duplicate port definition with",
                (true, false) => "dangerously ambiguous port definition with",
                (false, _) => "overlapping port definition with",
            };
            warnings.push(format!("{}: {word} {}", port.path(), other.path()));
        }
        others.push(port);
    }
}

fn port_names(spec: &Cursor<'_>, warnings: &mut Vec<String>) {
    let mut first: BTreeMap<&str, Path> = BTreeMap::new();
    for list in ["containers", "initContainers"] {
        for container in spec.field(list).items() {
            for port in container.field("ports").items() {
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
