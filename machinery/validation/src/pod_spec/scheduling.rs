//! Validation of scheduling constraints: affinity, topology spread, gates.

use std::collections::{HashMap, HashSet};

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use crate::Errors;
use crate::{checks, label_selector, node_selector, values};

const WEIGHT: &str = "must be in the range 1-100";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Validates affinity to nodes and to other pods.
pub(super) fn affinity(affinity: &Cursor<'_>, errors: &mut Errors) {
    let nodes = affinity.field("nodeAffinity");
    if nodes.field(REQUIRED).is_present() {
        node_selector::validate(&nodes.field(REQUIRED), errors);
    }
    for term in nodes.field(PREFERRED).items() {
        weight(&term, errors);
        node_selector::validate_term(&term.field("preference"), false, errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.field(kind);
        pods.field(REQUIRED).items().for_each(|term| pod_term(&term, errors));
        for term in pods.field(PREFERRED).items() {
            weight(&term, errors);
            pod_term(&term.field("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Cursor<'_>, errors: &mut Errors) {
    let weight = term.field("weight");
    let number = weight.i64().unwrap_or(0);
    if !(1..=100).contains(&number) {
        errors.push(Error::invalid(&weight.path(), number, WEIGHT));
    }
}

fn pod_term(term: &Cursor<'_>, errors: &mut Errors) {
    label_selector(&term.field("labelSelector"), errors);
    label_selector(&term.field("namespaceSelector"), errors);
    for namespace in term.field("namespaces").items() {
        let path = term.path().child("namespace");
        let diagnostics = values::label(namespace.str());
        errors.extend(diagnostics.iter().map(|m| Error::invalid(&path, namespace.str(), m)));
    }
    label_keys(term, errors);
    let key = term.field("topologyKey");
    if key.str().is_empty() {
        errors.push(key.required("can not be empty"));
    }
    checks::matches_rule(&key, names::qualified_name, errors);
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys`, whose values become part of the selector.
fn label_keys(term: &Cursor<'_>, errors: &mut Errors) {
    let (matching, mismatching) = (term.field("matchLabelKeys"), term.field("mismatchLabelKeys"));
    let selector = term.field("labelSelector");
    for keys in [&matching, &mismatching] {
        if !keys.is_empty() && !selector.is_present() {
            errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
        } else {
            keys.items().for_each(|key| checks::matches_rule(&key, names::qualified_name, errors));
        }
    }
    duplicate_selector_keys(term, &matching, &selector, errors);
    let mismatching: HashSet<&str> = mismatching.items().map(|key| key.str()).collect();
    for key in matching.items().filter(|key| mismatching.contains(key.str())) {
        errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
    }
}

/// Reports keys for which the selector has a requirement of the user in addition to the one that creation added.
fn duplicate_selector_keys(term: &Cursor<'_>, keys: &Cursor<'_>, selector: &Cursor<'_>, errors: &mut Errors) {
    let indexes: HashMap<&str, usize> =
        keys.items().enumerate().map(|(index, key)| (key.str(), index)).collect();
    let mut seen: HashSet<&str> = selector.field("matchLabels").entries().map(|(key, _)| key).collect();
    for requirement in selector.field("matchExpressions").items() {
        let key = requirement.field("key").str();
        if let Some(index) = indexes.get(key).filter(|_| seen.contains(key)) {
            // Upstream omits the name of the list in the path.
            let path = term.path().index(*index);
            errors.push(Error::invalid(&path, key, "exists in both matchLabelKeys and labelSelector"));
        }
        seen.insert(key);
    }
}

/// Validates topology spread constraints.
pub(super) fn spread(constraints: &Cursor<'_>, errors: &mut Errors) {
    fn pair<'a>(constraint: &Cursor<'a>) -> (&'a str, &'a str) {
        (constraint.field("topologyKey").str(), constraint.field("whenUnsatisfiable").str())
    }
    // Like upstream, reports all but the last of several equal pairs.
    let last: HashMap<_, _> =
        constraints.items().enumerate().map(|(index, constraint)| (pair(&constraint), index)).collect();
    for (index, constraint) in constraints.items().enumerate() {
        let (skew, key) = (constraint.field("maxSkew"), constraint.field("topologyKey"));
        let when = constraint.field("whenUnsatisfiable");
        let number = skew.i64().unwrap_or(0);
        if number <= 0 {
            errors.push(Error::invalid(&skew.path(), number, "must be greater than zero"));
        }
        if key.str().is_empty() {
            errors.push(key.required("can not be empty"));
        }
        if !matches!(when.str(), "DoNotSchedule" | "ScheduleAnyway") {
            errors.push(when.not_supported(&["DoNotSchedule", "ScheduleAnyway"]));
        }
        if last.get(&pair(&constraint)).is_some_and(|last| *last != index) {
            let path = constraint.path().child("{topologyKey, whenUnsatisfiable}");
            errors.push(Error::duplicate(&path, format!("{{{}, {}}}", key.str(), when.str())));
        }
        min_domains(&constraint, when.str(), errors);
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            checks::one_of(&constraint.field(policy), &["Honor", "Ignore"], errors);
        }
        label_keys(&constraint, errors);
        label_selector(&constraint.field("labelSelector"), errors);
    }
}

fn min_domains(constraint: &Cursor<'_>, when: &str, errors: &mut Errors) {
    let domains = constraint.field("minDomains");
    let Some(number) = domains.i64() else { return };
    if number <= 0 {
        errors.push(Error::invalid(&domains.path(), number, "must be greater than zero"));
    }
    if when != "DoNotSchedule" {
        let text = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}");
        errors.push(Error::invalid(&domains.path(), number, &text));
    }
}

/// Validates scheduling gates.
pub(super) fn gates(gates: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for gate in gates.items() {
        let name = gate.field("name").str();
        errors.extend(names::to_field_errors(&gate.path(), name, names::qualified_name(name)));
        if !seen.insert(name) {
            errors.push(Error::duplicate(&gate.path(), name));
        }
    }
}
