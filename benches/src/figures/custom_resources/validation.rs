//! Time to validate one thing in this process, without connection and store.
//!
//! Measures the steps of a write between reading the body and storing the object, in the order of a write. The rules are compiled
//! before, a cost that in a server the first object of a definition has.

use std::time::Instant;

use portico_kinds::Kinds;
use portico_machinery::{GroupVersionKind, Object};
use portico_schema::structural::{CustomResource, Structural};
use portico_schema::{Format, Schema};

use super::NAME;
use super::things::{GROUP, KIND, VERSION, schema, spec, thing};
use crate::Failure;
use crate::report::{Goal, Report};
use crate::statistics::Latencies;

/// Objects that are validated.
const OBJECTS: usize = 20_000;
/// Objects validated before the measurement, to fill caches.
const WARM_UP: usize = 1_000;
const VALIDATED_US: f64 = 50.0;

pub(super) fn measure(report: &mut Report) -> Result<(), Failure> {
    let meta = Kinds::builtin()?.meta_schema("ObjectMeta").and_then(|meta| meta.typed().cloned());
    let compiled = Structural::from_json(schema(&spec()).as_bytes())?;
    let schema = Schema::structural(compiled, meta.ok_or("ObjectMeta has no types")?);
    let gvk = GroupVersionKind { group: GROUP.into(), version: VERSION.into(), kind: KIND.into() };
    let body = thing("validated");
    let read = || schema.decode(body.as_bytes(), Format::Json, &gvk).map_err(|error| error.to_string());
    let object = read()?.object;
    let custom = schema.custom().ok_or("things are custom resources")?;
    if !is_valid(custom, &object) {
        return Err("a thing is validated to be wrong".into());
    }
    let whole = micros(&object, |object| !schema.coerce_and_default(object) & is_valid(custom, object));
    let name = "one object pruned, defaulted, validated by schema and rules, p50";
    report.add(NAME, name, whole, "us", Goal::AtMost(VALIDATED_US));
    let mut part = |name, took| report.add(NAME, name, took, "us", Goal::None);
    part("- pruned, metadata read, defaulted", micros(&object, |object| schema.coerce_and_default(object)));
    part("- validated by schema", micros(&object, |object| is_structure_valid(custom, object)));
    part("- validated by rules", micros(&object, |object| custom.check_rules(object, None, &|| false)));
    part("a body read, pruned and defaulted, p50", micros(&(), |()| read()));
    Ok(())
}

/// Returns true if the object is valid.
fn is_valid(custom: &CustomResource, object: &Object) -> bool {
    is_structure_valid(custom, object) && custom.check_rules(object, None, &|| false).errors.is_empty()
}

fn is_structure_valid(custom: &CustomResource, object: &Object) -> bool {
    custom.validate(object).is_empty()
        && custom.validate_embedded(object).is_empty()
        && custom.validate_lists(object).is_empty()
}

/// Returns the median time of one run, without the time to create its input and to drop its result.
fn micros<T: Clone, R>(input: &T, run: impl Fn(&mut T) -> R) -> f64 {
    let mut nanos = Vec::with_capacity(OBJECTS);
    for at in 0..WARM_UP + OBJECTS {
        let mut input = std::hint::black_box(input.clone());
        let start = Instant::now();
        let validated = std::hint::black_box(run(&mut input));
        let took = start.elapsed();
        drop(validated);
        if at >= WARM_UP {
            nanos.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
    }
    Latencies::new(nanos).micros(0.5)
}
