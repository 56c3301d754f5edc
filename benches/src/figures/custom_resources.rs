//! Custom resources of 20 fields and three rules: durable creations, time to validate one, LISTs, and schemas that are
//! designed to be expensive.

mod expensive;
mod things;
mod validation;

use std::time::{Duration, Instant};

use http::Method;

use crate::https::Endpoint;
use crate::kube::{Kube, SKIP_REASON};
use crate::load::{Load, drive, get};
use crate::portico::Portico;
use crate::process::Process;
use crate::report::{Goal, Report, note};
use crate::statistics::median_of;
use crate::{BenchContext, Failure};
use things::{COLLECTION, define, thing};

const NAME: &str = "custom-resources";
const PORTICO: &str = "portico";
const CLIENTS: usize = 16;
const WRITERS: usize = 16;
const CREATES: f64 = 5_000.0;
const LISTED: usize = 10_000;
const LIST_MS: f64 = 100.0;
const LIST_BYTES: f64 = 2.0;

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    validation::measure(report)?;
    creations(setting, report).await?;
    lists(setting, report).await?;
    expensive::measure(setting, report).await
}

/// A measured server.
struct Contender<'a> {
    name: &'static str,
    process: &'a Process,
    endpoint: Endpoint,
}

impl<'a> Contender<'a> {
    fn portico(setting: &BenchContext, portico: &'a Portico) -> Result<Self, Failure> {
        Ok(Self { name: PORTICO, process: &portico.process, endpoint: portico.endpoint(setting)? })
    }

    fn kube(setting: &BenchContext, kube: &'a Kube) -> Result<Self, Failure> {
        Ok(Self { name: "kube-apiserver", process: &kube.server, endpoint: kube.endpoint(setting)? })
    }

    /// Returns the goal for Portico, and none for other servers.
    fn goal(&self, goal: Goal) -> Goal {
        if self.name == PORTICO { goal } else { Goal::None }
    }
}

async fn creations(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let (portico, kube) = (Portico::start(setting).await?, Kube::start(setting).await?);
    let mut all = vec![(Contender::portico(setting, &portico)?, Vec::new())];
    match &kube {
        Some(kube) => all.push((Contender::kube(setting, kube)?, Vec::new())),
        None => report.skip("custom resources of kube-apiserver", SKIP_REASON),
    }
    for (one, _) in &all {
        define(&one.endpoint).await?;
    }
    for round in 0..setting.options.rounds {
        for (one, rounds) in &mut all {
            let (load, took) = create(setting, one, round).await?;
            let (name, rate) = (one.name, load.per_second);
            note(&format!("round {round}: {name:<15} {rate:.0}/s, {took:.0} us of processor time each"));
            rounds.push((load, took));
        }
    }
    for (one, rounds) in &all {
        let name = one.name;
        let figure = format!("{name}: POST, 20 fields and 3 rules, {CLIENTS} clients");
        let rate = median_of(rounds, |(load, _)| load.per_second);
        report.add(NAME, figure, rate, "/s", one.goal(Goal::AtLeast(CREATES)));
        let p99 = median_of(rounds, |(load, _)| load.p99());
        report.add(NAME, format!("{name}: POST, p99"), p99, "us", Goal::None);
        let took = median_of(rounds, |(_, took)| *took);
        report.add(NAME, format!("{name}: POST, processor time"), took, "us", Goal::None);
    }
    Ok(())
}

/// Runs a round of creations; also returns the server's processor time per creation in microseconds.
async fn create(setting: &BenchContext, one: &Contender<'_>, round: usize) -> Result<(Load, f64), Failure> {
    let time = Duration::from_secs(setting.options.seconds);
    let before = one.process.processor_time()?;
    let maker = one.endpoint.clone();
    let posts = drive(&one.endpoint, CLIENTS, time, move |client, sent| {
        maker.json(Method::POST, COLLECTION, thing(&format!("r{round}-{client}-{sent}")))
    });
    let load = posts.await?.require_success("POST")?;
    let took = (one.process.processor_time()? - before).as_secs_f64() * 1e6 / load.response_count();
    Ok((load, took))
}

/// Measures one server after the other, so that each can use the whole machine.
async fn lists(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    list(setting, &Contender::portico(setting, &portico)?, report).await?;
    drop(portico);
    match Kube::start(setting).await? {
        Some(kube) => list(setting, &Contender::kube(setting, &kube)?, report).await,
        None => Ok(()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "megabytes")]
async fn list(setting: &BenchContext, one: &Contender<'_>, report: &mut Report) -> Result<(), Failure> {
    let (name, endpoint) = (one.name, &one.endpoint);
    define(endpoint).await?;
    let writers = (0..WRITERS).map(|writer| async move {
        let mut client = endpoint.client().await?;
        for at in (writer + 1..LISTED).step_by(WRITERS) {
            client.send_ok(Method::POST, COLLECTION, thing(&format!("t{at:05}"))).await?;
        }
        Ok::<_, Failure>(())
    });
    futures::future::try_join_all(writers).await?;
    let before = one.process.resident()?;
    let start = Instant::now();
    endpoint.client().await?.get(COLLECTION).await?;
    // Long enough for several responses of a slow server.
    let time = Duration::from_secs(setting.options.seconds).max(start.elapsed() * 5);
    let mut rounds = Vec::new();
    for _ in 0..setting.options.rounds {
        rounds.push(get(endpoint, COLLECTION, 1, time).await?.require_success("LIST")?);
    }
    let p50 = median_of(&rounds, Load::p50) / 1e3;
    let goal = one.goal(Goal::AtMost(LIST_MS));
    report.add(NAME, format!("{name}: LIST of {LISTED}, median"), p50, "ms", goal);
    let bytes =
        endpoint.client().await?.send(Method::GET, COLLECTION, "").await?.1.len() as f64 / (1024.0 * 1024.0);
    let memory = (one.process.resident()? - before).max(0.0) / bytes;
    let figure = format!("{name}: LIST of {LISTED}: memory, of its bytes");
    report.add(NAME, figure, memory, "x", one.goal(Goal::AtMost(LIST_BYTES)));
    Ok(())
}
