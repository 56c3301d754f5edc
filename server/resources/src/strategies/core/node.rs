//! Node: taints, capacity, pod CIDRs and table cells.

mod annotations;
mod table;
mod taints;
mod validate;

use std::borrow::Cow;

use portico_machinery::Object;
use portico_machinery::table::Cell;

use portico_registry::{
    DecodeStrategy, FieldStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy,
};
use portico_validation::Errors;
use portico_validation::pod_spec::round_to_milli;
use portico_validation::ranges;

pub(crate) struct Node;

impl DecodeStrategy for Node {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        for list in ["capacity", "allocatable"] {
            round_to_milli(object, &["status", list]);
        }
        if object.at(&["status", "allocatable"]).is_empty()
            && let Some(capacity) = object.get(&["status", "capacity"])
        {
            object.put(&["status", "allocatable"], capacity);
        }
        sync_pod_cidrs(object);
    }
}

impl Strategy for Node {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        new.remove(&["spec", "configSource"]);
        new.remove(&["status", "config"]);
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate::validate_node(new, errors);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: RequestTime) {
        if !old.at(&["spec", "configSource"]).is_present() {
            new.remove(&["spec", "configSource"]);
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate::validate_node(new, errors);
        validate::validate_change(new, old, errors);
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        let spec = new.at(&["spec"]);
        let mut warnings = Vec::new();
        if spec.field("configSource").is_present() {
            warnings.push("spec.configSource: the feature is removed".to_owned());
        }
        if !spec.field("externalID").str().is_empty() {
            let text = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
            warnings.push(text.to_owned());
        }
        warnings.extend(spec.field("podCIDRs").items().flat_map(|range| ranges::warnings(&range)));
        warnings
    }
}

impl SubresourceStrategy for Node {
    fn prepare_status(&self, new: &mut Object, old: &Object) {
        let in_use = ["spec", "status"].iter().zip(["configSource", "config"]);
        if !in_use.into_iter().any(|(part, field)| old.at(&[part, field]).is_present()) {
            new.remove(&["status", "config"]);
        }
    }

    fn validate_status(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate::validate_change(new, old, errors);
    }
}

impl FieldStrategy for Node {
    fn field<'o>(&self, object: &'o Object, field: &str) -> Cow<'o, str> {
        match field {
            "spec.unschedulable" => Cow::Owned(object.at(&["spec", "unschedulable"]).bool().to_string()),
            _ => Cow::Borrowed(object.str_at(field)),
        }
    }
}

impl TableStrategy for Node {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        table::cell(function, object)
    }
}

/// Synchronizes `podCIDR` and `podCIDRs`: `podCIDR` is the first element of the list and takes precedence if they differ.
fn sync_pod_cidrs(node: &mut Object) {
    let single = node.str_at("spec.podCIDR").to_owned();
    let first = node.at(&["spec", "podCIDRs"]).items().next().map(|range| range.str().to_owned());
    match first {
        Some(first) if single.is_empty() => node.set(&["spec", "podCIDR"], first),
        Some(first) if first == single => {}
        _ if single.is_empty() => {}
        _ => node.set(&["spec", "podCIDRs"], [single]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_cidr_and_pod_cidrs_are_synchronized() {
        for (sent, single, list) in [
            (r#"{"podCIDR":"10.0.0.0/24"}"#, "10.0.0.0/24", r#"["10.0.0.0/24"]"#),
            (r#"{"podCIDRs":["10.0.0.0/24","fd00::/64"]}"#, "10.0.0.0/24", r#"["10.0.0.0/24","fd00::/64"]"#),
            (r#"{"podCIDR":"10.1.0.0/24","podCIDRs":["10.0.0.0/24"]}"#, "10.1.0.0/24", r#"["10.1.0.0/24"]"#),
        ] {
            let mut node = Object::from_json(format!(r#"{{"spec":{sent}}}"#).as_bytes()).unwrap();
            sync_pod_cidrs(&mut node);
            assert_eq!(node.str_at("spec.podCIDR"), single);
            assert_eq!(node.at(&["spec", "podCIDRs"]).printed(), list);
        }
    }
}
