//! ResourceSlice: devices of a pool, and the nodes that can access them.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use super::slice_fields::{NodeChoice, validate_counters};
use super::{device, naming};
use portico_registry::{DecodeStrategy, FieldStrategy, RequestTime, Strategy};
use portico_validation::Errors;
use portico_validation::{checks, values};

const DEVICES_MAX: usize = 128;
const DEVICES_MAX_WITH_MORE: usize = 64;
const COUNTER_SETS_MAX: usize = 8;

pub(crate) struct ResourceSlice;

impl DecodeStrategy for ResourceSlice {
    fn default(&self, object: &mut Object, time: RequestTime) {
        device::default(object, time);
    }
}

impl FieldStrategy for ResourceSlice {
    fn unknown_field(&self, field: &str) -> String {
        format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}")
    }
}

impl Strategy for ResourceSlice {
    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        device::drop_gated(new);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: RequestTime) {
        if !device::uses_gated(old) {
            device::drop_gated(new);
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_slice(&new.at(&["spec"]), None, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate_slice(&new.at(&["spec"]), Some(&old.at(&["spec"])), errors);
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

fn validate_slice(spec: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    naming::validate_driver(&spec.field("driver"), errors);
    validate_pool(&spec.field("pool"), errors);
    NODE_CHOICE.validate(spec, errors);
    validate_contents(spec, old, errors);
}

fn validate_pool(pool: &Cursor<'_>, errors: &mut Errors) {
    naming::validate_pool(&pool.field("name"), errors);
    let (count, generation) = (pool.field("resourceSliceCount"), pool.field("generation"));
    if count.i64().unwrap_or(0) <= 0 {
        let number = count.i64().unwrap_or(0);
        errors.push(Error::invalid(&count.path(), number, "must be greater than zero"));
    }
    if generation.i64().is_some_and(|n| n < 0) {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
}

const NODE_CHOICE: NodeChoice = NodeChoice {
    fields: &["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"],
    none_error: "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
    several_error: "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set",
    empty_name_error: "must be either unset or set to a non-empty string",
    requires_one_term: true,
};

fn validate_contents(spec: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    let (sets, devices) = (spec.field("sharedCounters"), spec.field("devices"));
    if !sets.is_empty() && !devices.is_empty() {
        let text = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(Error::invalid(&spec.path(), "", text));
    }
    let additional =
        devices.items().any(|at| !at.field("taints").is_empty() || !at.field("consumesCounters").is_empty());
    if checks::max_items(&devices, if additional { DEVICES_MAX_WITH_MORE } else { DEVICES_MAX }, errors) {
        let per_device = spec.field("perDeviceNodeSelection").bool();
        let mut seen = HashSet::new();
        for at in devices.items() {
            let has_same_name = |other: &Cursor<'_>| other.field("name").str() == at.field("name").str();
            let before = old.and_then(|old| old.field("devices").items().find(has_same_name));
            device::validate(&at, before.as_ref(), per_device, errors);
            if !seen.insert(at.field("name").str()) {
                errors.push(Error::duplicate(&at.path(), at.field("name").str()));
            }
        }
    }
    if checks::max_items(&sets, COUNTER_SETS_MAX, errors) {
        let mut seen = HashSet::new();
        for set in sets.items() {
            checks::required(&set.field("name"), values::label, errors);
            validate_counters(&set.field("counters"), errors);
            if !seen.insert(set.field("name").str()) {
                errors.push(Error::duplicate(&set.path(), set.field("name").str()));
            }
        }
    }
}
