//! What is validated of a node. Upstream names some of the fields by paths where they do not stand.

use std::collections::HashSet;

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object};

use super::annotations;
use super::taints::taints;
use portico_validation::Errors;
use portico_validation::pod_spec::is_counted;
use portico_validation::{checks, ranges};

/// Most bytes of the name of a feature.
const FEATURE_MAX: usize = 253;
const FEATURE_NAME: &str = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes";

/// Validates the whole.
pub(super) fn node(node: &Object, errors: &mut Errors) {
    annotations::validate(&node.metadata().field("annotations"), errors);
    taints(&node.at(&["spec", "taints"]), &Path::from("metadata.taints"), errors);
    swap(node, errors);
    resources(node, errors);
    declared_features(&node.at(&["status", "declaredFeatures"]), errors);
    pod_ranges(&node.at(&["spec", "podCIDRs"]), errors);
}

/// Validates what may change, of the whole and of the status alike.
pub(super) fn change(new: &Object, old: &Object, errors: &mut Errors) {
    annotations::validate(&new.metadata().field("annotations"), errors);
    resources(new, errors);
    declared_features(&new.at(&["status", "declaredFeatures"]), errors);
    let mut seen = HashSet::new();
    for address in new.at(&["status", "addresses"]).items() {
        if !seen.insert((address.field("type").str(), address.field("address").str())) {
            errors.push(address.duplicate());
        }
    }
    let (spec, before) = (new.at(&["spec"]), old.at(&["spec"]));
    for (list, field, shown) in [(true, "podCIDRs", "podCIDR"), (false, "providerID", "providerID")] {
        let (now, was) = (spec.field(field), before.field(field));
        let is_set = if list { !was.is_empty() } else { !was.str().is_empty() };
        if is_set && !now.same_as(&was) {
            errors.push(
                now.forbidden(&format!("node updates may not change {shown} except from \"\" to valid")),
            );
        }
    }
    taints(&spec.field("taints"), &Path::from("metadata.taints"), errors);
    if spec.field("externalID").str() != before.field("externalID").str() {
        errors.push(spec.field("externalID").forbidden("may not be updated"));
    }
}

fn swap(node: &Object, errors: &mut Errors) {
    let capacity = node.at(&["status", "nodeInfo", "swap", "capacity"]).i64();
    if let Some(bytes) = capacity.filter(|bytes| *bytes <= 0) {
        let path = Path::new("metadata.nodeSwapStatus.capacity".to_owned());
        errors.push(Error::invalid(&path, bytes, "must be greater than zero"));
    }
}

fn resources(node: &Object, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        for (name, value) in node.at(&["status", list]).entries() {
            let path = Path::new(format!("status.{list}.{name}"));
            let quantity = value.quantity().unwrap_or_default();
            if quantity.is_negative() {
                errors.push(Error::invalid(&path, quantity.to_string(), checks::NOT_NEGATIVE));
            }
            if is_counted(name) && !quantity.is_whole() {
                errors.push(Error::invalid(&path, quantity.to_string(), "must be an integer"));
            }
        }
    }
}

fn declared_features(list: &Cursor<'_>, errors: &mut Errors) {
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
        // Upstream reports the later of two that are not in order.
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

fn pod_ranges(list: &Cursor<'_>, errors: &mut Errors) {
    let families: Vec<Option<bool>> =
        list.items().map(|range| ranges::cidr(&range, errors).map(|range| range.addr().is_ipv4())).collect();
    if families.len() > 1
        && let Some((at, range)) = list.items().enumerate().find(|(at, _)| families[*at].is_none())
    {
        let why = format!("invalid CIDR[{at}]: <nil> (invalid CIDR address: {})", range.str());
        let detail = format!("invalid PodCIDRs. failed to check with dual stack with error:{why}");
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
        node(&Object::from_json(json).unwrap(), &mut errors);
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
