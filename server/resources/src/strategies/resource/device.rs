//! Device of a ResourceSlice: attributes, capacity, taints and consumed counters.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, time};

use super::slice_fields::NodeChoice;
use super::{naming, request_policy, shared_fields, slice_fields};
use portico_registry::RequestTime;
use portico_validation::Errors;
use portico_validation::{checks, values};

const PROPERTIES_MAX: usize = 32;
const TAINTS_MAX: usize = 16;
const CONSUMED_MAX: usize = 2;
const VALUE_MAX: usize = 64;
/// List-valued attributes. Their feature gate is off.
const LISTS: [&str; 4] = ["ints", "bools", "strings", "versions"];
const MAPPINGS: &str = "nodeAllocatableResourceMappings";
const NODE_CHOICE: NodeChoice = NodeChoice {
    fields: &["nodeName", "nodeSelector", "allNodes"],
    none_error: NODE_CHOICE_REQUIRED,
    several_error: NODE_CHOICE_REQUIRED,
    empty_name_error: "must not be empty",
    requires_one_term: false,
};
const NODE_CHOICE_REQUIRED: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const NODE_CHOICE_FORBIDDEN: &str = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

/// Sets the time of taints without a time to now.
pub(super) fn default(slice: &mut Object, time: RequestTime) {
    slice.edit_each(&["spec", "devices"], |device| {
        device.edit_each(&["taints"], |taint| {
            if !taint.at(&["timeAdded"]).is_present() {
                taint.set(&["timeAdded"], time::rfc3339(time.now));
            }
        });
    });
}

/// True if an object uses fields whose feature gate is off.
pub(super) fn uses_gated(slice: &Object) -> bool {
    slice.at(&["spec", "devices"]).items().any(|device| {
        let lists =
            device.field("attributes").entries().any(|(_, a)| LISTS.iter().any(|l| a.field(l).is_present()));
        lists || device.field(MAPPINGS).is_present()
    })
}

/// Drops fields whose feature gate is off.
pub(super) fn drop_gated(slice: &mut Object) {
    slice.edit_each(&["spec", "devices"], |device| {
        device.remove(&[MAPPINGS]);
        device.edit_each(&["attributes"], |attribute| {
            for list in LISTS {
                attribute.remove(&[list]);
            }
        });
    });
}

/// Validates one device. Unchanged taints are not validated.
pub(super) fn validate(device: &Cursor<'_>, old: Option<&Cursor<'_>>, per_device: bool, errors: &mut Errors) {
    naming::validate_label(&device.field("name"), errors);
    let (attributes, capacity) = (device.field("attributes"), device.field("capacity"));
    let count = attributes.len() + capacity.len();
    if count > PROPERTIES_MAX {
        let text = format!("the total number of attributes and capacities must not exceed {PROPERTIES_MAX}");
        errors.push(Error::invalid(&device.path(), count, &text));
    }
    for (name, _) in attributes.entries() {
        naming::validate_attribute(&attributes, name, errors);
        validate_attribute(&attributes.key(name), errors);
    }
    for (name, _) in capacity.entries() {
        naming::validate_attribute(&capacity, name, errors);
        let multiple = device.field("allowMultipleAllocations").bool();
        request_policy::validate(&capacity.key(name), multiple, errors);
    }
    let taints = device.field("taints");
    let is_unchanged = old.is_some_and(|old| checks::is_same(&old.field("taints"), &taints));
    if !is_unchanged && checks::max_items(&taints, TAINTS_MAX, errors) {
        taints.items().for_each(|at| shared_fields::validate_taint(&at, errors));
    }
    validate_consumed_counters(&device.field("consumesCounters"), errors);
    if per_device {
        NODE_CHOICE.validate(device, errors);
    } else if NODE_CHOICE.fields.iter().any(|field| device.field(field).is_present()) {
        errors.push(Error::invalid_printed(&device.path(), "null", NODE_CHOICE_FORBIDDEN));
    }
    shared_fields::validate_binding_conditions(device, errors);
}

fn validate_attribute(attribute: &Cursor<'_>, errors: &mut Errors) {
    let set = ["int", "bool", "string", "version"].iter().filter(|f| attribute.field(f).is_present()).count();
    if set != 1 {
        let printed = if set == 0 { "\"\"".to_owned() } else { attribute.printed() };
        errors.push(attribute.invalid_as(&printed, "exactly one value must be specified"));
    }
    let (text, version) = (attribute.field("string"), attribute.field("version"));
    checks::max_bytes(&text, VALUE_MAX, errors);
    if version.is_present() {
        if !is_semantic_version(version.str()) {
            errors.push(version.invalid("must be a string compatible with semver.org spec 2.0.0"));
        }
        checks::max_bytes(&version, VALUE_MAX, errors);
    }
}

/// True for a text of the form `major.minor.patch[-pre][+build]`.
fn is_semantic_version(version: &str) -> bool {
    let (rest, build) = version.split_once('+').map_or((version, None), |(rest, build)| (rest, Some(build)));
    let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
    let number =
        |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) && (n == "0" || !n.starts_with('0'));
    let is_word = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let pre_word = |w: &str| is_word(w) && (number(w) || !w.bytes().all(|b| b.is_ascii_digit()));
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre.is_none_or(|pre| pre.split('.').all(pre_word))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

fn validate_consumed_counters(list: &Cursor<'_>, errors: &mut Errors) {
    if !checks::max_items(list, CONSUMED_MAX, errors) {
        return;
    }
    let mut seen = HashSet::new();
    for entry in list.items() {
        let set = entry.field("counterSet");
        checks::required(&set, values::label, errors);
        slice_fields::validate_counters(&entry.field("counters"), errors);
        if !seen.insert(set.str()) {
            errors.push(Error::duplicate(&entry.path(), set.str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semantic_versions_are_recognized() {
        for (text, good) in [
            ("1.2.3", true),
            ("1.2", false),
            ("01.2.3", false),
            ("1.2.3-a.1+b", true),
            ("1.2.3-01", false),
            ("", false),
        ] {
            assert_eq!(is_semantic_version(text), good, "{text}");
        }
    }
}
