//! Validation of nodes. As upstream, some errors have paths that differ from the location of the field.

use std::collections::HashSet;

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object};

use super::annotations;
use super::taints::validate_taints;
use portico_validation::Errors;
use portico_validation::pod_spec::is_integer_resource;
use portico_validation::{checks, ranges};

/// Maximum length of the name of a feature in bytes.
const FEATURE_MAX: usize = 253;
const FEATURE_NAME: &str = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes";

/// Validates a whole node.
pub(super) fn validate_node(node: &Object, errors: &mut Errors) {
    annotations::validate(&node.metadata().field("annotations"), errors);
    validate_taints(&node.at(&["spec", "taints"]), &Path::from("metadata.taints"), errors);
    validate_swap(node, errors);
    validate_resources(node, errors);
    validate_declared_features(&node.at(&["status", "declaredFeatures"]), errors);
    validate_pod_ranges(&node.at(&["spec", "podCIDRs"]), errors);
}

/// Validates an update of the node or of its status.
pub(super) fn validate_change(new: &Object, old: &Object, errors: &mut Errors) {
    annotations::validate(&new.metadata().field("annotations"), errors);
    validate_resources(new, errors);
    validate_declared_features(&new.at(&["status", "declaredFeatures"]), errors);
    let mut seen = HashSet::new();
    for address in new.at(&["status", "addresses"]).items() {
        if !seen.insert((address.field("type").str(), address.field("address").str())) {
            errors.push(address.duplicate());
        }
    }
    let (spec, before) = (new.at(&["spec"]), old.at(&["spec"]));
    for (list, field, reported_name) in [(true, "podCIDRs", "podCIDR"), (false, "providerID", "providerID")] {
        let (value, old_value) = (spec.field(field), before.field(field));
        let is_set = if list { !old_value.is_empty() } else { !old_value.str().is_empty() };
        if is_set && !value.same_as(&old_value) {
            errors.push(value.forbidden(&format!(
                "node updates may not change {reported_name} except from \"\" to valid"
            )));
        }
    }
    validate_taints(&spec.field("taints"), &Path::from("metadata.taints"), errors);
    if spec.field("externalID").str() != before.field("externalID").str() {
        errors.push(spec.field("externalID").forbidden("may not be updated"));
    }
}

fn validate_swap(node: &Object, errors: &mut Errors) {
    let capacity = node.at(&["status", "nodeInfo", "swap", "capacity"]).i64();
    if let Some(bytes) = capacity.filter(|bytes| *bytes <= 0) {
        let path = Path::new("metadata.nodeSwapStatus.capacity".to_owned());
        errors.push(Error::invalid(&path, bytes, "must be greater than zero"));
    }
}

fn validate_resources(node: &Object, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        for (name, value) in node.at(&["status", list]).entries() {
            let path = Path::new(format!("status.{list}.{name}"));
            let quantity = value.quantity().unwrap_or_default();
            if quantity.is_negative() {
                errors.push(Error::invalid(&path, quantity.to_string(), checks::NOT_NEGATIVE));
            }
            if is_integer_resource(name) && !quantity.is_whole() {
                errors.push(Error::invalid(&path, quantity.to_string(), "must be an integer"));
            }
        }
    }
}

fn validate_declared_features(list: &Cursor<'_>, errors: &mut Errors) {
    let features: Vec<_> = list.items().collect();
    for (index, feature) in features.iter().enumerate() {
        let name = feature.str();
        if name.len() > FEATURE_MAX {
            let text =
                format!("invalid feature name {name:?}: must be no more than {FEATURE_MAX} characters");
            errors.push(feature.invalid(&text));
        } else if !is_feature_name(name) {
            errors.push(feature.invalid(&format!("invalid feature name {name:?}: {FEATURE_NAME}")));
        }
        // As upstream, reports the later of two features that are not sorted.
        match features.get(index + 1) {
            Some(next) if next.str() == name => errors.push(Error::duplicate(&next.path(), name)),
            Some(next) if next.str() < name => {
                errors.push(next.invalid("list must be sorted alphabetically"))
            }
            _ => {}
        }
    }
}

/// `[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*`
fn is_feature_name(name: &str) -> bool {
    let mut parts = name.split('/');
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && parts.all(|part| {
            part.starts_with(|first: char| first.is_ascii_alphabetic())
                && part.bytes().all(|b| b.is_ascii_alphanumeric())
        })
}

fn validate_pod_ranges(list: &Cursor<'_>, errors: &mut Errors) {
    let families: Vec<Option<bool>> =
        list.items().map(|range| ranges::cidr(&range, errors).map(|range| range.addr().is_ipv4())).collect();
    if families.len() > 1
        && let Some((index, range)) =
            list.items().enumerate().find(|(closure, _)| families[*closure].is_none())
    {
        let message = format!("invalid CIDR[{index}]: <nil> (invalid CIDR address: {})", range.str());
        let detail = format!("invalid PodCIDRs. failed to check with dual stack with error:{message}");
        errors.push(Error::internal(&list.path(), &detail));
    }
    match families.as_slice() {
        [] | [_] => {}
        [Some(first), Some(second)] if first != second => {}
        _ => errors.push(list.invalid("may specify no more than one CIDR for each IP family")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_taints_have_upstreams_paths() {
        let json =
            br#"{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"},
            {"key":"b","effect":"X"}]},"status":{"capacity":{"cpu":"-1","pods":"1500m"}}}"#;
        let mut errors = Errors::new();
        validate_node(&Object::from_json(json).unwrap(), &mut errors);
        let paths: Vec<String> = errors.iter().map(|error| error.path.as_str().to_owned()).collect();
        let expected = [
            "metadata.taints[1]",
            "metadata.taints[2].effect",
            "status.capacity.cpu",
            "status.capacity.pods",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn features_have_names_like_those_of_go() {
        for (name, good) in [("Abc", true), ("A/b1", true), ("b", false), ("A/", false), ("A-b", false)] {
            assert_eq!(is_feature_name(name), good, "{name}");
        }
    }
}
