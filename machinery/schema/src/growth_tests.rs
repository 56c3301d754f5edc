//! Complexity tests: no walk is quadratic in the size of user input. Each walk is measured with an input and with one four
//! times as large.
//!
//! Measures the processor time of this thread, the minimum of several runs: linear work takes four times as long, quadratic
//! work sixteen times. Also measures peak memory, which is the same in each run.

mod definitions;
mod objects;
mod ownership;
mod patches;

use std::time::Duration;

use cpu_time::ThreadTime;
use serde_json::{Map, Value, json};

use crate::structural::object_meta_for_tests;
use crate::{Schema, Structural};

/// Maximum growth of the work when the input becomes four times as large: 2.5 for each doubling.
const MAX_GROWTH: f64 = 6.25;
/// Duration below which measurements are too inaccurate and performance is irrelevant.
const MIN_DURATION: Duration = Duration::from_millis(2);
/// Memory below which growth is irrelevant.
const MIN_MEMORY: u64 = 64 * 1024;
/// Maximum repetitions of a measurement on a busy machine.
const ATTEMPTS: usize = 25;

/// Checks that the time of work on an input of `size` grows linearly. The time of `input` is not measured.
fn assert_linear_time<I>(name: &str, size: usize, input: impl Fn(usize) -> I, work: impl Fn(&I)) {
    let (small, large) = (input(size), input(4 * size));
    assert_linear_memory(name, &|| work(&small), &|| work(&large));
    let min_time = |input: &I, before: Duration| {
        let began = ThreadTime::now();
        work(input);
        before.min(began.elapsed())
    };
    let (mut of_small, mut of_large) = (Duration::MAX, Duration::MAX);
    for _ in 0..ATTEMPTS {
        (of_small, of_large) = (min_time(&small, of_small), min_time(&large, of_large));
        of_small = min_time(&small, of_small);
        let growth = of_large.as_secs_f64() / of_small.as_secs_f64().max(f64::EPSILON);
        if growth <= MAX_GROWTH || of_large < MIN_DURATION {
            return;
        }
    }
    panic!("{name}: {of_small:?} for {size} becomes {of_large:?} for {}", 4 * size);
}

/// Checks that the peak memory of the work grows linearly when the input becomes four times as large.
fn assert_linear_memory(name: &str, small: &dyn Fn(), large: &dyn Fn()) {
    // Allocations that happen once and are kept count for neither.
    small();
    let peak = |work: &dyn Fn()| allocation_counter::measure(work).bytes_max;
    let (of_small, of_large) = (peak(small), peak(large));
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let growth = of_large as f64 / of_small.max(1) as f64;
    assert!(
        growth <= MAX_GROWTH || of_large < MIN_MEMORY,
        "{name}: {of_small} bytes become {of_large} bytes at most at once"
    );
}

/// Name of a test case, and a function that creates an input of a size.
type Row<I> = (&'static str, fn(usize) -> I);

/// Returns a map with `count` names and equal values.
fn map(count: usize, value: &Value) -> Map<String, Value> {
    (0..count).map(|at| (format!("k{at}"), value.clone())).collect()
}

/// Returns `count` names.
fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("k{at}")).collect()
}

/// Wraps a value `levels` times.
fn chain(levels: usize, inner: Value, wrap: fn(Value) -> Value) -> Value {
    (0..levels).fold(inner, |inner, _| wrap(inner))
}

/// Returns a schema with this schema for `spec`.
fn of_spec(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

/// Returns the schema of custom resources with this `spec`.
fn custom(spec: &Value) -> Schema {
    Schema::structural(Structural::compile(&of_spec(spec)).unwrap(), object_meta_for_tests())
}

#[test]
fn quadratic_growth_is_detected() {
    let names = |count| names(count);
    let scan = |names: &Vec<String>| {
        let last = |name: &String| names.iter().rposition(|other| other == name);
        assert!(names.iter().all(|name| last(name).is_some()));
    };
    let found = std::panic::catch_unwind(|| assert_linear_time("a scan for each name", 400, names, scan));
    assert!(found.is_err());
    let table = |names: &Vec<String>| assert_eq!(vec![names.clone(); names.len()].len(), names.len());
    let found =
        std::panic::catch_unwind(|| assert_linear_time("a copy for each name", 50, self::names, table));
    let reported = found.unwrap_err();
    assert!(reported.downcast_ref::<String>().is_some_and(|text| text.contains("bytes at most at once")));
}
