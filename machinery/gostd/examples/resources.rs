//! Sums resource quantities, and parses durations and names like Go programs: `cargo run --example resources`.

use std::error::Error;

use portico_gostd::apimachinery::{Quantity, validation};
use portico_gostd::time::{format_duration, parse_duration};

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn Error>> {
    // Quantities keep their suffixes, and compare by value.
    let mut total = Quantity::ZERO;
    for request in ["512Mi", "1.5Gi", "64Mi"] {
        total = total.plus(&request.parse::<Quantity>()?);
    }
    let limit: Quantity = "2Gi".parse()?;
    println!("{total} of {limit} requested ({} bytes), too much: {}", total.value(), total > limit);

    let cpu: Quantity = "0.25".parse()?;
    println!("{cpu} CPU are {} thousandths", cpu.milli_value());

    let timeout = parse_duration("90m")?;
    println!("timeout {}", format_duration(timeout));

    // Errors have Go's messages.
    if let Err(error) = parse_duration("90 minutes") {
        println!("{error}");
    }
    for problem in validation::dns1123_label("My_App") {
        println!("My_App: {problem}");
    }
    Ok(())
}
