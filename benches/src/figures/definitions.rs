//! Definitions of 100 properties each: time until many of them are served, memory per definition, and the cost of the next one
//! when thousands exist.

use std::fmt::Write as _;
use std::time::Instant;

use http::header::ACCEPT;
use http::{HeaderValue, Method, StatusCode};

use super::startup;
use crate::https::{Client, Endpoint};
use crate::kube::{Kube, SKIP_REASON};
use crate::portico::Portico;
use crate::process::{Process, wait_until};
use crate::report::{Goal, Report};
use crate::statistics::median;
use crate::{BenchContext, Failure};

const NAME: &str = "definitions";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const PROPERTIES: usize = 100;
const WRITERS: usize = 16;
const SOME: usize = 300;
const SOME_MS: f64 = 1_000.0;
const EACH_KIB: f64 = 60.0;
const MANY: usize = 2_000;
const MANY_MIB: f64 = 150.0;
const MANY_READY_MS: f64 = 400.0;
const NEXT_MS: f64 = 20.0;
const NEXT_OPENAPI_MS: f64 = 100.0;
const DISCOVERY_MS: f64 = 20.0;
/// Number of definitions that share a group, as those of operators do.
const PER_GROUP: usize = 10;

fn group(at: usize) -> String {
    format!("g{}.bench.example.com", at / PER_GROUP)
}

/// Returns the path of a definition's objects.
pub(super) fn collection(at: usize) -> String {
    format!("/apis/{}/v1/things{at}", group(at))
}

/// Returns a definition with properties of several types, with descriptions as in real ones.
pub(super) fn definition(at: usize) -> String {
    let mut properties = String::new();
    for property in 0..PROPERTIES {
        let ty = match property % 5 {
            0 => r#""type":"string","maxLength":64"#,
            1 => r#""type":"integer","minimum":0"#,
            2 => r#""type":"boolean","default":false"#,
            3 => r#""type":"array","items":{"type":"string"}"#,
            _ => r#""type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}}"#,
        };
        let comma = if property > 0 { "," } else { "" };
        // Writing into a String cannot fail.
        let _infallible = write!(
            properties,
            r#"{comma}"property{property}":{{"description":"What property {property} of things of kind {at} is about.",{ty}}}"#
        );
    }
    let group = group(at);
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"things{at}.{group}"}},"spec":{{"group":"{group}","scope":"Namespaced","names":{{"plural":"things{at}","singular":"thing{at}","kind":"Thing{at}","listKind":"Thing{at}List"}},"versions":[{{"name":"v1","served":true,"storage":true,"subresources":{{"status":{{}}}},"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{{"type":"object","properties":{{{properties}}}}},"status":{{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}}}}]}}}}"#
    )
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    measure_hundreds(setting, report).await?;
    measure_thousands(setting, report).await
}

/// Creates these definitions and waits until all of them are served; returns the milliseconds.
pub(super) async fn serve(endpoint: &Endpoint, range: std::ops::Range<usize>) -> Result<f64, Failure> {
    let start = Instant::now();
    let writers = (0..WRITERS).map(|writer| {
        let range = range.clone();
        async move {
            let mut client = endpoint.client().await?;
            for at in range.clone().skip(writer).step_by(WRITERS) {
                client.send_ok(Method::POST, DEFINITIONS, definition(at)).await?;
            }
            for at in range.skip(writer).step_by(WRITERS) {
                wait_served(&mut client, &collection(at)).await?;
            }
            Ok::<_, Failure>(())
        }
    });
    futures::future::try_join_all(writers).await?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

async fn wait_served(client: &mut Client, path: &str) -> Result<(), Failure> {
    wait_until(path, async || Ok((client.get(path).await? == StatusCode::OK).then_some(()))).await
}

/// Returns the growth of a process's memory from `before` (in MiB), in KiB per definition.
#[expect(clippy::cast_precision_loss, reason = "hundreds")]
fn kib_per_definition(process: &Process, before: f64, count: usize) -> Result<f64, Failure> {
    Ok((process.resident()? - before) * 1024.0 / count as f64)
}

async fn measure_hundreds(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    for _ in 0..setting.options.rounds {
        let portico = Portico::start(setting).await?;
        let before = portico.process.resident()?;
        times.push(serve(&portico.endpoint(setting)?, 0..SOME).await?);
        sizes.push(kib_per_definition(&portico.process, before, SOME)?);
    }
    let figure = format!("{SOME} definitions created and served, median");
    report.add(NAME, figure, median(&times), "ms", Goal::AtMost(SOME_MS));
    report.add(NAME, "memory of each, median", median(&sizes), "KiB", Goal::AtMost(EACH_KIB));
    let Some(kube) = Kube::start(setting).await? else {
        report.skip("the same on kube-apiserver", SKIP_REASON);
        return Ok(());
    };
    let before = kube.server.resident()?;
    let took = serve(&kube.endpoint(setting)?, 0..SOME).await?;
    report.add(NAME, format!("kube-apiserver: {SOME} definitions"), took, "ms", Goal::None);
    let size = kib_per_definition(&kube.server, before, SOME)?;
    report.add(NAME, "kube-apiserver: memory of each", size, "KiB", Goal::None);
    Ok(())
}

async fn measure_thousands(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let endpoint = portico.endpoint(setting)?;
    serve(&endpoint, 0..MANY).await?;
    let mut client = endpoint.client().await?;
    measure_next(&mut client, setting, report).await?;
    let mut request = endpoint.get("/apis")?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(AGGREGATED));
    let start = Instant::now();
    client.exchange(request).await?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    report.add(
        NAME,
        format!("{MANY} definitions: /apis, aggregated"),
        took,
        "ms",
        Goal::AtMost(DISCOVERY_MS),
    );
    let resident = portico.process.resident()?;
    report.add(NAME, format!("{MANY} definitions: resident"), resident, "MiB", Goal::AtMost(MANY_MIB));
    let folder = portico.end();
    let mut ready = Vec::new();
    for _ in 0..setting.options.rounds {
        ready.push(startup::once(&folder).await?);
    }
    let figure = format!("{MANY} definitions: start to /readyz 200, median");
    report.add(NAME, figure, median(&ready), "ms", Goal::AtMost(MANY_READY_MS));
    Ok(())
}

/// Measures further definitions, each in a separate group.
async fn measure_next(
    client: &mut Client,
    setting: &BenchContext,
    report: &mut Report,
) -> Result<(), Failure> {
    let (mut first, mut openapi) = (Vec::new(), Vec::new());
    for round in 0..setting.options.rounds {
        let at = MANY + (round + 1) * PER_GROUP;
        let document = format!("/openapi/v3/apis/{}/v1", group(at));
        let start = Instant::now();
        client.send_ok(Method::POST, DEFINITIONS, definition(at)).await?;
        wait_served(client, &collection(at)).await?;
        first.push(start.elapsed().as_secs_f64() * 1e3);
        wait_served(client, &document).await?;
        openapi.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let figure = format!("{MANY} definitions: the next one is served, median");
    report.add(NAME, figure, median(&first), "ms", Goal::AtMost(NEXT_MS));
    let figure = format!("{MANY} definitions: OpenAPI v3 of the next one, median");
    report.add(NAME, figure, median(&openapi), "ms", Goal::AtMost(NEXT_OPENAPI_MS));
    Ok(())
}
