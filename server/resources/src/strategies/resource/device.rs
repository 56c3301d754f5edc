//! One device of a slice: attributes, capacity, taints, the counters that it uses up.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, time};

use super::slice_parts::Choice;
use super::{names_of, parts, request_policy, slice_parts};
use portico_registry::Moment;
use portico_validation::Errors;
use portico_validation::{checks, values};

const PROPERTIES_MAX: usize = 32;
const TAINTS_MAX: usize = 16;
const CONSUMED_MAX: usize = 2;
const VALUE_MAX: usize = 64;
/// Attributes that are lists, behind a gate that is off.
const LISTS: [&str; 4] = ["ints", "bools", "strings", "versions"];
const MAPPINGS: &str = "nodeAllocatableResourceMappings";
const WHERE: Choice = Choice {
    ways: &["nodeName", "nodeSelector", "allNodes"],
    none: ONE_WAY,
    several: ONE_WAY,
    nameless: "must not be empty",
    one_term: false,
};
const ONE_WAY: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const NO_WAY: &str = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

/// A taint without a time is from now.
pub(super) fn default(slice: &mut Object, moment: Moment) {
    slice.edit_each(&["spec", "devices"], |device| {
        device.edit_each(&["taints"], |taint| {
            if !taint.at(&["timeAdded"]).is_present() {
                taint.set(&["timeAdded"], time::rfc3339(moment.now));
            }
        });
    });
}

/// Whether an object has what is behind closed gates already.
pub(super) fn uses_gated(slice: &Object) -> bool {
    slice.at(&["spec", "devices"]).items().any(|device| {
        let lists =
            device.field("attributes").entries().any(|(_, a)| LISTS.iter().any(|l| a.field(l).is_present()));
        lists || device.field(MAPPINGS).is_present()
    })
}

/// Takes away what is behind closed gates.
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

/// Validates one device; taints that it had before are not looked at again.
pub(super) fn validate(device: &Cursor<'_>, old: Option<&Cursor<'_>>, per_device: bool, errors: &mut Errors) {
    names_of::label(&device.field("name"), errors);
    let (attributes, capacity) = (device.field("attributes"), device.field("capacity"));
    let count = attributes.len() + capacity.len();
    if count > PROPERTIES_MAX {
        let text = format!("the total number of attributes and capacities must not exceed {PROPERTIES_MAX}");
        errors.push(Error::invalid(&device.path(), count, &text));
    }
    for (name, _) in attributes.entries() {
        names_of::attribute(&attributes, name, errors);
        attribute(&attributes.key(name), errors);
    }
    for (name, _) in capacity.entries() {
        names_of::attribute(&capacity, name, errors);
        let multiple = device.field("allowMultipleAllocations").bool();
        request_policy::validate(&capacity.key(name), multiple, errors);
    }
    let taints = device.field("taints");
    let had = old.is_some_and(|old| checks::same(&old.field("taints"), &taints));
    if !had && checks::at_most(&taints, TAINTS_MAX, errors) {
        taints.items().for_each(|at| parts::taint(&at, errors));
    }
    consumed(&device.field("consumesCounters"), errors);
    if per_device {
        WHERE.validate(device, errors);
    } else if WHERE.ways.iter().any(|way| device.field(way).is_present()) {
        errors.push(Error::invalid_printed(&device.path(), "null", NO_WAY));
    }
    parts::binding_conditions(device, errors);
}

fn attribute(attribute: &Cursor<'_>, errors: &mut Errors) {
    let set = ["int", "bool", "string", "version"].iter().filter(|f| attribute.field(f).is_present()).count();
    if set != 1 {
        let printed = if set == 0 { "\"\"".to_owned() } else { attribute.printed() };
        errors.push(attribute.invalid_as(&printed, "exactly one value must be specified"));
    }
    let (text, version) = (attribute.field("string"), attribute.field("version"));
    checks::no_longer(&text, VALUE_MAX, errors);
    if version.is_present() {
        if !is_semantic(version.str()) {
            errors.push(version.invalid("must be a string compatible with semver.org spec 2.0.0"));
        }
        checks::no_longer(&version, VALUE_MAX, errors);
    }
}

/// `major.minor.patch[-pre][+build]`.
fn is_semantic(version: &str) -> bool {
    let (rest, build) = version.split_once('+').map_or((version, None), |(rest, build)| (rest, Some(build)));
    let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
    let number =
        |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) && (n == "0" || !n.starts_with('0'));
    let word = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let pre_word = |w: &str| word(w) && (number(w) || !w.bytes().all(|b| b.is_ascii_digit()));
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre.is_none_or(|pre| pre.split('.').all(pre_word))
        && build.is_none_or(|build| build.split('.').all(word))
}

fn consumed(list: &Cursor<'_>, errors: &mut Errors) {
    if !checks::at_most(list, CONSUMED_MAX, errors) {
        return;
    }
    let mut seen = HashSet::new();
    for entry in list.items() {
        let set = entry.field("counterSet");
        checks::required(&set, values::label, errors);
        slice_parts::counters(&entry.field("counters"), errors);
        if !seen.insert(set.str()) {
            errors.push(Error::duplicate(&entry.path(), set.str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        for (text, good) in [
            ("1.2.3", true),
            ("1.2", false),
            ("01.2.3", false),
            ("1.2.3-a.1+b", true),
            ("1.2.3-01", false),
            ("", false),
        ] {
            assert_eq!(is_semantic(text), good, "{text}");
        }
    }
}
