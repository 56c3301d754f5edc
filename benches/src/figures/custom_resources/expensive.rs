//! Definitions that are designed to be expensive: time and memory must be bounded, whatever the response.

use std::time::Instant;

use http::Method;

use super::NAME;
use super::things::{DEFINITIONS, definition, spec};
use crate::https::Client;
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::{BenchContext, Failure};

const HOSTILE_MS: f64 = 100.0;
const HOSTILE_MIB: f64 = 50.0;

pub(super) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let endpoint = portico.endpoint(setting)?;
    let mut client = endpoint.client().await?;
    client.send_ok(Method::POST, DEFINITIONS, definition("warm", &spec())).await?;
    let before = portico.process.resident()?;
    let mut slowest = ("", 0.0_f64);
    for (name, spec) in schemas() {
        let body = definition("hostile", &spec);
        let mut best = f64::INFINITY;
        for _ in 0..setting.options.rounds {
            let took = once(&mut client, &body).await?;
            best = best.min(took);
        }
        note(&format!("{name:<40} {best:>8.0} ms"));
        if best > slowest.1 {
            slowest = (name, best);
        }
    }
    let figure = format!("the slowest of expensive schemas ({})", slowest.0);
    report.add(NAME, figure, slowest.1, "ms", Goal::AtMost(HOSTILE_MS));
    let memory = portico.process.resident()? - before;
    report.add(NAME, "memory taken by expensive schemas", memory, "MiB", Goal::AtMost(HOSTILE_MIB));
    Ok(())
}

/// Returns the milliseconds of a dry run with any response.
async fn once(client: &mut Client, body: &str) -> Result<f64, Failure> {
    let start = Instant::now();
    client.send(Method::POST, &format!("{DEFINITIONS}?dryRun=All"), body.to_owned()).await?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn schemas() -> Vec<(&'static str, String)> {
    let object = |properties: String| format!(r#"{{"type":"object","properties":{{{properties}}}}}"#);
    let many: Vec<String> = (0..5_000).map(|at| format!(r#""p{at}":{{"type":"string"}}"#)).collect();
    let ruled: Vec<String> = (0..1_000)
        .map(|at| format!(r#""p{at}":{{"type":"string","maxLength":9,"x-kubernetes-validations":[{{"rule":"self != 'a{at}'"}}]}}"#))
        .collect();
    let deep =
        r#"{"type":"object","properties":{"a":"#.repeat(1_000) + r#"{"type":"string"}"# + &"}}".repeat(1_000);
    let nested = format!("{}1{}", "(".repeat(1_000), ")".repeat(1_000));
    let costly = "self.all(a, self.all(b, self.all(c, a + b + c != 'x')))";
    let list = |rule: &str| {
        format!(
            r#"{{"type":"array","maxItems":210,"items":{{"type":"string","maxLength":9}},"x-kubernetes-validations":[{{"rule":"{rule}"}}]}}"#
        )
    };
    vec![
        ("5,000 properties", object(many.join(","))),
        ("1,000 properties with rules", object(ruled.join(","))),
        ("1,000 levels", deep),
        ("a rule at the cost limit", list(costly)),
        ("a rule of 1,000 parentheses", list(&format!("{nested} == 1"))),
        (
            "a pattern that doubles again and again",
            object(format!(
                r#""p":{{"type":"string","pattern":"^{}$"}}"#,
                "(a{1,100}".repeat(8) + &"){1,100}".repeat(8)
            )),
        ),
    ]
}
