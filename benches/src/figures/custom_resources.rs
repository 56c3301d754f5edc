//! Custom resources of 20 fields and three rules: durable creations, LISTs, and schemas that are made to be expensive.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};

use crate::https::{Client, Door};
use crate::kube::{Kube, WHY_NOT};
use crate::load::{Load, drive, get};
use crate::portico::Portico;
use crate::process::until;
use crate::report::{Goal, Report, note};
use crate::statistics::median_of;
use crate::{Failure, Setting};

const NAME: &str = "custom-resources";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const COLLECTION: &str = "/apis/bench.example.com/v1/namespaces/default/things";
const CLIENTS: usize = 16;
const WRITERS: usize = 16;
const CREATES: f64 = 5_000.0;
const LISTED: usize = 10_000;
const LIST_MS: f64 = 100.0;
const LIST_BYTES: f64 = 2.0;
const HOSTILE_MS: f64 = 100.0;
const HOSTILE_MIB: f64 = 50.0;

/// A definition of `things` with this schema of the spec.
fn definition(plural: &str, spec: &str) -> String {
    let kind = plural.to_uppercase();
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.bench.example.com"}},"spec":{{"group":"bench.example.com","scope":"Namespaced","names":{{"plural":"{plural}","singular":"{plural}one","kind":"{kind}","listKind":"{kind}List"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{spec}}}}}}}}}]}}}}"#
    )
}

/// 20 fields and three rules.
fn spec() -> String {
    let mut fields = String::new();
    for at in 0..10 {
        let comma = if at > 0 { "," } else { "" };
        // Writing into a String cannot fail.
        let _infallible = write!(
            fields,
            r#"{comma}"text{at}":{{"type":"string","maxLength":64}},"number{at}":{{"type":"integer","minimum":0}}"#
        );
    }
    let rules = r#"[{"rule":"self.number0 <= self.number1"},{"rule":"self.text0.startsWith('t')"},{"rule":"size(self.text1) + size(self.text2) < 64","message":"too long"}]"#;
    format!(r#"{{"type":"object","properties":{{{fields}}},"x-kubernetes-validations":{rules}}}"#)
}

fn thing(name: &str) -> String {
    let mut fields = String::new();
    for at in 0..10 {
        let comma = if at > 0 { "," } else { "" };
        let _infallible = write!(fields, r#"{comma}"text{at}":"text number {at}","number{at}":{at}"#);
    }
    format!(
        r#"{{"apiVersion":"bench.example.com/v1","kind":"THINGS","metadata":{{"name":"{name}"}},"spec":{{{fields}}}}}"#
    )
}

async fn define(door: &Door) -> Result<(), Failure> {
    let mut client = door.client().await?;
    client.must(Method::POST, DEFINITIONS, definition("things", &spec())).await?;
    until("things are served", async || Ok((client.get(COLLECTION).await? == StatusCode::OK).then_some(())))
        .await?;
    // A server may hold back the first creation for a moment.
    client.must(Method::POST, COLLECTION, thing("first")).await.map(drop)
}

pub(crate) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    creations(setting, report).await?;
    lists(setting, report).await?;
    hostile(setting, report).await
}

async fn creations(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let (portico, kube) = (Portico::start(setting).await?, Kube::start(setting).await?);
    let mut doors = vec![("portico", portico.door(setting)?, Goal::AtLeast(CREATES))];
    match &kube {
        Some(kube) => doors.push(("kube-apiserver", kube.door(setting)?, Goal::None)),
        None => report.skip("custom resources of kube-apiserver", WHY_NOT),
    }
    let time = Duration::from_secs(setting.options.seconds);
    for (name, door, goal) in doors {
        define(&door).await?;
        let mut rounds: Vec<Load> = Vec::new();
        for round in 0..setting.options.rounds {
            let maker = door.clone();
            let posts = drive(&door, CLIENTS, time, move |client, sent| {
                maker.json(Method::POST, COLLECTION, thing(&format!("r{round}-{client}-{sent}")))
            });
            rounds.push(posts.await?.clean("POST")?);
            note(&format!("round {round}: {name:<15} {:.0}/s", rounds[round].per_second));
        }
        let figure = format!("{name}: POST, 20 fields and 3 rules, {CLIENTS} clients");
        report.add(NAME, figure, median_of(&rounds, |load| load.per_second), "/s", goal);
        report.add(NAME, format!("{name}: POST, p99"), median_of(&rounds, Load::p99), "us", Goal::None);
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "megabytes")]
async fn lists(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let door = portico.door(setting)?;
    define(&door).await?;
    let door = &door;
    let writers = (0..WRITERS).map(|writer| async move {
        let mut client = door.client().await?;
        for at in (writer + 1..LISTED).step_by(WRITERS) {
            client.must(Method::POST, COLLECTION, thing(&format!("t{at:05}"))).await?;
        }
        Ok::<_, Failure>(())
    });
    futures::future::try_join_all(writers).await?;
    let before = portico.process.resident()?;
    let time = Duration::from_secs(setting.options.seconds);
    let mut rounds = Vec::new();
    for _ in 0..setting.options.rounds {
        rounds.push(get(door, COLLECTION, 1, time).await?.clean("LIST")?);
    }
    let p50 = median_of(&rounds, Load::p50) / 1e3;
    report.add(NAME, format!("LIST of {LISTED}, median"), p50, "ms", Goal::AtMost(LIST_MS));
    let bytes =
        door.client().await?.send(Method::GET, COLLECTION, "").await?.1.len() as f64 / (1024.0 * 1024.0);
    let taken = (portico.process.resident()? - before).max(0.0) / bytes;
    report.add(NAME, format!("LIST of {LISTED}: memory, of its bytes"), taken, "x", Goal::AtMost(LIST_BYTES));
    Ok(())
}

/// Definitions and objects that are made to be expensive: bounded time and memory, whatever the answer.
async fn hostile(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let door = portico.door(setting)?;
    let mut client = door.client().await?;
    client.must(Method::POST, DEFINITIONS, definition("warm", &spec())).await?;
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
    let taken = portico.process.resident()? - before;
    report.add(NAME, "memory taken by expensive schemas", taken, "MiB", Goal::AtMost(HOSTILE_MIB));
    Ok(())
}

/// Milliseconds of a dry run; any answer will do.
async fn once(client: &mut Client, body: &str) -> Result<f64, Failure> {
    let begun = Instant::now();
    client.send(Method::POST, &format!("{DEFINITIONS}?dryRun=All"), body.to_owned()).await?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
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
