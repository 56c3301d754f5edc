//! Creations of ConfigMaps while 10,000 watches wait for other objects: the cost of matching each event with each watch.

use std::time::Duration;

use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Incoming;
use portico_kit::tasks::TaskSet;

use super::objects::{COLLECTION, config_map};
use crate::https::Endpoint;
use crate::load::{Load, drive};
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::statistics::{median_of, median_ratio};
use crate::{BenchContext, Failure};

const NAME: &str = "dispatch";
const CLIENTS: usize = 16;
const CONNECTIONS: usize = 50;
const WATCHES_PER_CONNECTION: usize = 200;
const WATCHES: usize = CONNECTIONS * WATCHES_PER_CONNECTION;
/// Minimum rate of creations with the watches, relative to the rate without.
const MIN_RATE_RATIO: f64 = 0.5;

/// A load, and the processor time per creation in microseconds.
struct Measured {
    load: Load,
    micros: f64,
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let portico = Portico::start(setting).await?;
    let endpoint = portico.endpoint(setting)?;
    let tasks = TaskSet::new();
    for round in 1..=setting.options.rounds {
        without.push(create(setting, &portico, &endpoint, &format!("a{round}")).await?);
        let watches = open(&endpoint, &tasks).await?;
        with.push(create(setting, &portico, &endpoint, &format!("b{round}")).await?);
        if round == setting.options.rounds {
            let resident = portico.process.resident()?;
            report.add(NAME, format!("resident with {WATCHES} watches"), resident, "MiB", Goal::None);
        }
        drop(watches);
        let rates = [&without, &with].map(|all| all.last().map_or(0.0, |one| one.load.per_second));
        note(&format!("round {round}: {:>7.0}/s, with watches {:>7.0}/s", rates[0], rates[1]));
    }
    tasks.cancel();
    for (what, all) in [("without watches", &without), ("with watches", &with)] {
        let rate = median_of(all, |one| one.load.per_second);
        report.add(NAME, format!("POST of 1 KiB, {CLIENTS} clients, {what}"), rate, "/s", Goal::None);
        let micros = median_of(all, |one| one.micros);
        report.add(NAME, format!("{what}, processor time of each"), micros, "us", Goal::None);
    }
    let share = median_ratio(&with, &without, |one| one.load.per_second);
    report.add(NAME, format!("with {WATCHES} watches of without"), share, "x", Goal::AtLeast(MIN_RATE_RATIO));
    Ok(())
}

async fn create(
    setting: &BenchContext,
    portico: &Portico,
    endpoint: &Endpoint,
    prefix: &str,
) -> Result<Measured, Failure> {
    let time = Duration::from_secs(setting.options.seconds);
    let (maker, prefix) = (endpoint.clone(), prefix.to_owned());
    let before = portico.process.processor_time()?;
    let load = drive(endpoint, CLIENTS, time, move |client, sent| {
        maker.json(Method::POST, COLLECTION, config_map(&format!("{prefix}-{client}-{sent}"), 'p'))
    });
    let load = load.await?.require_success("POST")?;
    let micros = (portico.process.processor_time()? - before).as_secs_f64() * 1e6 / load.response_count();
    Ok(Measured { load, micros })
}

/// Opens watches that match no object: half of them select by name, half by label.
async fn open(endpoint: &Endpoint, tasks: &TaskSet) -> Result<Vec<Incoming>, Failure> {
    let mut watches = Vec::with_capacity(WATCHES);
    for connection in 0..CONNECTIONS {
        let mut sender = endpoint.http2(tasks).await?;
        for at in 0..WATCHES_PER_CONNECTION {
            let number = connection * WATCHES_PER_CONNECTION + at;
            let selector = match number % 2 {
                0 => format!("fieldSelector=metadata.name%3Dabsent-{number}"),
                _ => format!("labelSelector=team%3Dt{number}"),
            };
            let request = Request::get(format!("https://localhost{COLLECTION}?watch=true&{selector}"));
            let answer = sender.send_request(request.body(Full::default())?).await?;
            if !answer.status().is_success() {
                return Err(format!("watch {number}: {}", answer.status()).into());
            }
            watches.push(answer.into_body());
        }
    }
    Ok(watches)
}
