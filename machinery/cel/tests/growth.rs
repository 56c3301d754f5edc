//! The cost of an expression is linear in its length, in time and memory: parsing, checking, estimating, planning and running an
//! expression that is four times as long takes four times as long, not sixteen times.

use std::time::Duration;

use cpu_time::ThreadTime;
use portico_cel::kubernetes::NEW_EXPRESSIONS;
use portico_cel::{DeclType, DeclaredSizes, Environment, Language, Type, Value};

/// Maximum growth of the work when an expression becomes four times as long: 2.5 for each doubling.
const MAX_GROWTH: f64 = 6.25;
/// Duration below which measurements are too inaccurate and performance is irrelevant.
const MIN_DURATION: Duration = Duration::from_millis(2);
/// Memory below which growth is irrelevant.
const MIN_MEMORY: u64 = 64 * 1024;
/// Maximum repetitions of a measurement on a busy machine.
const ATTEMPTS: usize = 25;

fn repeated(item: impl Fn(usize) -> String, joint: &str, count: usize) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(joint)
}

/// Name of a test case, and a function that creates an expression of a length.
type Row = (&'static str, fn(usize) -> String);

fn expressions() -> Vec<Row> {
    vec![
        ("sums", |n| repeated(|at| at.to_string(), " + ", n / 5)),
        ("conditions", |n| repeated(|at| format!("number != {at}"), " && ", n)),
        ("calls", |n| format!("text{}", ".trim()".repeat(n / 20))),
        ("lists", |n| format!("number in [{}]", repeated(|at| at.to_string(), ", ", n))),
        ("floats in lists", |n| {
            let floats = repeated(|at| format!("{at}.5"), ", ", n);
            format!("ints.exists(x, double(x) in [{floats}])")
        }),
        ("maps", |n| format!("{{{}}}.size()", repeated(|at| format!("'k{at}': {at}"), ", ", n))),
        ("macros", |n| repeated(|at| format!("ints.all(x, x != {at})"), " || ", n / 10)),
        ("patterns", |n| repeated(|at| format!("text.matches('^a{at}$')"), " || ", n / 20)),
        ("long texts", |n| format!("text == '{}'", "x".repeat(10 * n))),
    ]
}

fn run(environment: &Environment, expression: &str) {
    let program = environment.compile(expression).unwrap_or_else(|error| panic!("{error}"));
    let _ = program.estimate(&DeclaredSizes(DeclType::dynamic()));
    let ints = Value::list((0..20).map(Value::Int).collect());
    let variables = [("ints", ints), ("text", Value::text("abc")), ("number", Value::Int(-1))];
    let (result, _) = program.evaluate(&variables, u64::MAX, &|| false);
    drop(result);
}

#[test]
fn expressions_grow_with_their_length() {
    let environment = Environment::builder()
        .language(Language::of_release(NEW_EXPRESSIONS))
        .variable("ints", Type::list(Type::Int))
        .variable("text", Type::String)
        .variable("number", Type::Int)
        .build();
    for (name, expression) in expressions() {
        let (small, large) = (expression(250), expression(1_000));
        // Compiled patterns are cached: run both once, so that this memory counts for neither.
        run(&environment, &small);
        run(&environment, &large);
        let peak = |expression: &str| allocation_counter::measure(|| run(&environment, expression)).bytes_max;
        let (small_peak, large_peak) = (peak(&small), peak(&large));
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let growth = large_peak as f64 / small_peak.max(1) as f64;
        assert!(
            growth <= MAX_GROWTH || large_peak < MIN_MEMORY,
            "{name}: peak memory grows from {small_peak} to {large_peak} bytes"
        );
        let min_time = |expression: &str, before: Duration| {
            let began = ThreadTime::now();
            run(&environment, expression);
            before.min(began.elapsed())
        };
        let (mut of_small, mut of_large) = (Duration::MAX, Duration::MAX);
        let growth_of = |small: Duration, large: Duration| large.as_secs_f64() / small.as_secs_f64();
        for _ in 0..ATTEMPTS {
            (of_small, of_large) = (min_time(&small, of_small), min_time(&large, of_large));
            if growth_of(of_small, of_large) <= MAX_GROWTH || of_large < MIN_DURATION {
                break;
            }
        }
        let within = growth_of(of_small, of_large) <= MAX_GROWTH || of_large < MIN_DURATION;
        assert!(within, "{name}: {of_small:?} becomes {of_large:?}");
    }
}
