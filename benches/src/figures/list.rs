//! LISTs: 3,000 ConfigMaps of 1 KiB at once, plain and as gzip; 100,000 in pages, and their memory.

use std::time::Duration;

use http::Method;
use http::header::{ACCEPT_ENCODING, HeaderValue};

use super::objects::{COLLECTION, config_map};
use crate::https::Endpoint;
use crate::kube::{Kube, SKIP_REASON};
use crate::load::{Load, drive, get};
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::statistics::{median_of, median_ratio};
use crate::{BenchContext, Failure};

const NAME: &str = "list";
const CLIENTS: usize = 4;
const SOME: usize = 3_000;
const MANY: usize = 100_000;
const WRITERS: usize = 16;
const GZIP_OF_KUBE: f64 = 3.0;
const PLAIN_OF_KUBE: f64 = 4.0;
const PAGE_MS: f64 = 10.0;
const SELECTED_MS: f64 = 2.0;
const MANY_MIB: f64 = 250.0;

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    measure_complete_lists(setting, report).await?;
    measure_pages(setting, report).await
}

/// Creates `count` objects over as many connections as there are writers.
async fn fill(endpoint: &Endpoint, count: usize) -> Result<(), Failure> {
    let writers = (0..WRITERS).map(|writer| async move {
        let mut client = endpoint.client().await?;
        for at in (writer..count).step_by(WRITERS) {
            client.send_ok(Method::POST, COLLECTION, config_map(&format!("object-{at:06}"), 'l')).await?;
        }
        Ok::<_, Failure>(())
    });
    futures::future::try_join_all(writers).await.map(drop)
}

async fn measure_gzip(endpoint: &Endpoint, time: Duration) -> Result<Load, Failure> {
    let maker = endpoint.clone();
    drive(endpoint, CLIENTS, time, move |_, _| {
        let mut request = maker.get(COLLECTION)?;
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        Ok(request)
    })
    .await
}

async fn measure_complete_lists(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let (portico, kube) = (Portico::start(setting).await?, Kube::start(setting).await?);
    let mut endpoints = vec![("portico", portico.endpoint(setting)?)];
    match &kube {
        Some(kube) => endpoints.push(("kube-apiserver", kube.endpoint(setting)?)),
        None => report.skip("LIST of kube-apiserver", SKIP_REASON),
    }
    for (_, endpoint) in &endpoints {
        fill(endpoint, SOME).await?;
    }
    let time = Duration::from_secs(setting.options.seconds);
    let mut measured = vec![(Vec::new(), Vec::new()); endpoints.len()];
    for round in 1..=setting.options.rounds {
        for ((name, endpoint), (plain, zipped)) in endpoints.iter().zip(&mut measured) {
            plain.push(get(endpoint, COLLECTION, CLIENTS, time).await?.require_success("LIST")?);
            zipped.push(measure_gzip(endpoint, time).await?.require_success("LIST as gzip")?);
            let last = |loads: &[Load]| loads.last().map_or(0.0, |load| load.per_second);
            note(&format!("round {round}: {name:<15} plain {:.0}/s gzip {:.0}/s", last(plain), last(zipped)));
        }
    }
    let rate = |load: &Load| load.per_second;
    for ((name, _), (plain, zipped)) in endpoints.iter().zip(&measured) {
        for (form, loads) in [("plain", plain), ("gzip", zipped)] {
            let figure = format!("{name}: LIST of {SOME} x 1 KiB, {CLIENTS} clients, {form}");
            report.add(NAME, figure, median_of(loads, rate), "/s", Goal::None);
        }
    }
    if let [(plain, zipped), (kube_plain, kube_zipped)] = measured.as_slice() {
        let ratio = median_ratio(plain, kube_plain, rate);
        report.add(NAME, "plain, of kube-apiserver", ratio, "x", Goal::AtLeast(PLAIN_OF_KUBE));
        let ratio = median_ratio(zipped, kube_zipped, rate);
        report.add(NAME, "gzip, of kube-apiserver", ratio, "x", Goal::AtLeast(GZIP_OF_KUBE));
    }
    Ok(())
}

async fn measure_pages(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let endpoint = portico.endpoint(setting)?;
    fill(&endpoint, MANY).await?;
    let time = Duration::from_secs(setting.options.seconds);
    let mut rounds = Vec::new();
    for _ in 0..setting.options.rounds {
        rounds.push(
            get(&endpoint, &format!("{COLLECTION}?limit=500"), 1, time)
                .await?
                .require_success("LIST limit=500")?,
        );
    }
    let p99 = median_of(&rounds, Load::p99) / 1e3;
    report.add(NAME, format!("{MANY} objects: LIST limit=500, p99"), p99, "ms", Goal::AtMost(PAGE_MS));
    let selected = format!("{COLLECTION}?labelSelector=app%3Dnone");
    let loads = [get(&endpoint, &selected, 1, time).await?.require_success("LIST by a label")?];
    let each = median_of(&loads, |load| 1e3 / load.per_second);
    report.add(
        NAME,
        format!("{MANY} objects: LIST by a label of none"),
        each,
        "ms",
        Goal::AtMost(SELECTED_MS),
    );
    let resident = portico.process.resident()?;
    report.add(NAME, format!("{MANY} objects: resident"), resident, "MiB", Goal::AtMost(MANY_MIB));
    Ok(())
}
