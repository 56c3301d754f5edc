//! Limits untrusted expressions: a budget for each run, one shared by several runs, and an interruption:
//! `cargo run --example budget`.

use std::error::Error;
use std::time::{Duration, Instant};

use portico_cel::{Environment, EvalError, Meter, Type, Value};

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn Error>> {
    let environment = Environment::builder().variable("items", Type::list(Type::Int)).build();
    let program = environment.compile("items.all(a, items.all(b, a + b > 0))")?;
    let items = || Value::list((1..=100).map(Value::Int).collect());

    // Each run reports its cost, even if it fails.
    let (result, cost) = program.evaluate(&[("items", items())], 1_000, &|| false);
    println!("budget 1000: {result:?} after {cost}");
    let (result, cost) = program.evaluate(&[("items", items())], 1_000_000, &|| false);
    println!("budget 1000000: {result:?} after {cost}");

    // Several runs share a meter.
    let meter = Meter::new(150_000);
    for run in 1..=3 {
        let limits = (100_000, &meter);
        let (result, _) = program.evaluate_metered(&[("items", items())], limits, &|| false);
        println!("run {run}: {result:?}, {} left", meter.remaining());
    }

    // The callback stops a run at a deadline.
    let deadline = Instant::now() + Duration::from_millis(1);
    let (result, _) = program.evaluate(&[("items", items())], u64::MAX, &|| Instant::now() > deadline);
    println!("interrupted: {}", matches!(result, Err(EvalError::Interrupted)));
    Ok(())
}
