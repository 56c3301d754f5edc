//! ResourceSlice: some devices of a pool, and which nodes have them.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use super::slice_parts::{Choice, counters};
use super::{device, names_of};
use portico_registry::{DecodeStrategy, FieldStrategy, Moment, Strategy};
use portico_validation::Errors;
use portico_validation::{checks, values};

const DEVICES_MAX: usize = 128;
const DEVICES_MAX_WITH_MORE: usize = 64;
const COUNTER_SETS_MAX: usize = 8;

/// See the module.
pub(crate) struct ResourceSlice;

impl DecodeStrategy for ResourceSlice {
    fn default(&self, object: &mut Object, moment: Moment) {
        device::default(object, moment);
    }
}

impl FieldStrategy for ResourceSlice {
    fn unknown_field(&self, field: &str) -> String {
        format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}")
    }
}

impl Strategy for ResourceSlice {
    fn prepare_create(&self, new: &mut Object, _moment: Moment) {
        device::drop_gated(new);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: Moment) {
        if !device::uses_gated(old) {
            device::drop_gated(new);
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        slice(&new.at(&["spec"]), None, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        slice(&new.at(&["spec"]), Some(&old.at(&["spec"])), errors);
        for path in [&["spec", "driver"][..], &["spec", "pool", "name"]] {
            checks::unchanged(&new.at(path), &old.at(path), errors);
        }
        let node = ["spec", "nodeName"];
        checks::unchanged_or_null(&new.at(&node), &old.at(&node), errors);
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        let driver = new.at(&["spec", "driver"]).str();
        if !driver.bytes().any(|b| b.is_ascii_uppercase()) {
            return Vec::new();
        }
        vec![format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
        )]
    }
}

fn slice(spec: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    names_of::driver(&spec.field("driver"), errors);
    pool(&spec.field("pool"), errors);
    WHERE.validate(spec, errors);
    contents(spec, old, errors);
}

fn pool(pool: &Cursor<'_>, errors: &mut Errors) {
    names_of::pool(&pool.field("name"), errors);
    let (count, generation) = (pool.field("resourceSliceCount"), pool.field("generation"));
    if count.i64().unwrap_or(0) <= 0 {
        let number = count.i64().unwrap_or(0);
        errors.push(Error::invalid(&count.path(), number, "must be greater than zero"));
    }
    if generation.i64().is_some_and(|n| n < 0) {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
}

const WHERE: Choice = Choice {
    ways: &["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"],
    none: "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
    several: "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set",
    nameless: "must be either unset or set to a non-empty string",
    one_term: true,
};

fn contents(spec: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    let (sets, devices) = (spec.field("sharedCounters"), spec.field("devices"));
    if !sets.is_empty() && !devices.is_empty() {
        let text = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(Error::invalid(&spec.path(), "", text));
    }
    let more =
        devices.items().any(|at| !at.field("taints").is_empty() || !at.field("consumesCounters").is_empty());
    if checks::at_most(&devices, if more { DEVICES_MAX_WITH_MORE } else { DEVICES_MAX }, errors) {
        let per_device = spec.field("perDeviceNodeSelection").bool();
        let mut seen = HashSet::new();
        for at in devices.items() {
            let same = |other: &Cursor<'_>| other.field("name").str() == at.field("name").str();
            let before = old.and_then(|old| old.field("devices").items().find(same));
            device::validate(&at, before.as_ref(), per_device, errors);
            if !seen.insert(at.field("name").str()) {
                errors.push(Error::duplicate(&at.path(), at.field("name").str()));
            }
        }
    }
    if checks::at_most(&sets, COUNTER_SETS_MAX, errors) {
        let mut seen = HashSet::new();
        for set in sets.items() {
            checks::required(&set.field("name"), values::label, errors);
            counters(&set.field("counters"), errors);
            if !seen.insert(set.field("name").str()) {
                errors.push(Error::duplicate(&set.path(), set.field("name").str()));
            }
        }
    }
}
