//! ConfigMaps of 1 KiB over HTTPS: GET, POST and PUT by 16 clients; GETs also on a split pair.

use std::time::Duration;

use http::Method;

use crate::https::Endpoint;
use crate::kube::{Kube, SKIP_REASON};
use crate::load::{Load, drive, get};
use crate::portico::Portico;
use crate::process::Process;
use crate::report::{Goal, Report, note};
use crate::statistics::{median_of, median_ratio};
use crate::{BenchContext, Failure};

const NAME: &str = "objects";
const CLIENTS: usize = 16;
const GETS: f64 = 15_000.0;
const GETS_OF_KUBE: f64 = 8.0;
const POSTS: f64 = 8_000.0;
const PUTS: f64 = 6_000.0;
const SPLIT: f64 = 0.5;
/// Maximum relative cost of a change, compared with the baseline.
pub(super) const MAX_BASELINE_RATIO: f64 = 1.03;
/// Path of the collection of objects.
pub(super) const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";

/// Returns a ConfigMap with one value of 1 KiB.
pub(super) fn config_map(name: &str, text: char) -> String {
    let value: String = std::iter::repeat_n(text, 1024).collect();
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"k":"{value}"}}}}"#
    )
}

/// A compared server, and its measurements by round.
struct Contender<'a> {
    name: &'static str,
    endpoint: Endpoint,
    processes: Vec<&'a Process>,
    gets: Vec<Measured>,
    posts: Vec<Measured>,
    puts: Vec<Measured>,
}

/// A load, and the processor time per request in microseconds.
struct Measured {
    load: Load,
    micros: f64,
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, endpoint: Endpoint, processes: Vec<&'a Process>) -> Self {
        Self { name, endpoint, processes, gets: Vec::new(), posts: Vec::new(), puts: Vec::new() }
    }

    fn processor_time(&self) -> Result<Duration, Failure> {
        self.processes.iter().map(|process| process.processor_time()).sum()
    }

    /// Runs a load, and measures the processor time of the processes.
    async fn measure(
        &self,
        what: &str,
        load: impl Future<Output = Result<Load, Failure>>,
    ) -> Result<Measured, Failure> {
        let before = self.processor_time()?;
        let load = load.await?.require_success(what)?;
        let micros = (self.processor_time()? - before).as_secs_f64() * 1e6 / load.response_count();
        Ok(Measured { load, micros })
    }

    async fn round(&mut self, time: Duration, round: usize) -> Result<(), Failure> {
        let read = format!("{COLLECTION}/read");
        self.gets.push(self.measure("GET", get(&self.endpoint, &read, CLIENTS, time)).await?);
        let maker = self.endpoint.clone();
        let posts = drive(&self.endpoint, CLIENTS, time, move |client, sent| {
            maker.json(Method::POST, COLLECTION, config_map(&format!("r{round}-{client}-{sent}"), 'p'))
        });
        self.posts.push(self.measure("POST", posts).await?);
        let maker = self.endpoint.clone();
        // Each client changes one object that its POSTs created: no conflicts, and the content always changes.
        let puts = drive(&self.endpoint, CLIENTS, time, move |client, sent| {
            let name = format!("r{round}-{client}-0");
            let text = if sent % 2 == 0 { 'u' } else { 'v' };
            maker.json(Method::PUT, &format!("{COLLECTION}/{name}"), config_map(&name, text))
        });
        self.puts.push(self.measure("PUT", puts).await?);
        let verbs = [("GET", &self.gets), ("POST", &self.posts), ("PUT", &self.puts)];
        let last = verbs.map(|(verb, all)| match all.last() {
            Some(one) => format!("{verb} {:>6.0}/s {:>4.0} us each", one.load.per_second, one.micros),
            None => String::new(),
        });
        note(&format!("round {round}: {:<15} {}", self.name, last.join("  ")));
        Ok(())
    }
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let one = Portico::start(setting).await?;
    let baseline = Portico::baseline(setting).await?;
    let server = Portico::server(setting).await?;
    let facade = Portico::facade(setting, &server).await?;
    let kube = Kube::start(setting).await?;
    let mut all = vec![
        Contender::new("all in one", one.endpoint(setting)?, vec![&one.process]),
        Contender::new("split", facade.endpoint(setting)?, vec![&facade.process, &server.process]),
    ];
    if let Some(baseline) = &baseline {
        all.push(Contender::new("baseline", baseline.endpoint(setting)?, vec![&baseline.process]));
    }
    match &kube {
        Some(kube) => {
            all.push(Contender::new(
                "kube-apiserver",
                kube.endpoint(setting)?,
                vec![&kube.server, &kube.etcd],
            ));
        }
        None => report.skip("the same on kube-apiserver", SKIP_REASON),
    }
    for contender in &all {
        let mut client = contender.endpoint.client().await?;
        client.send_ok(Method::POST, COLLECTION, config_map("read", 'r')).await?;
    }
    let time = Duration::from_secs(setting.options.seconds);
    for round in 1..=setting.options.rounds {
        for contender in &mut all {
            contender.round(time, round).await?;
        }
    }
    report_contenders(report, &all);
    report.add(NAME, "all in one: resident after the load", one.process.resident()?, "MiB", Goal::None);
    Ok(())
}

fn report_contenders(report: &mut Report, all: &[Contender<'_>]) {
    for contender in all {
        let name = contender.name;
        let goals = match name {
            "all in one" => [Goal::AtLeast(GETS), Goal::AtLeast(POSTS), Goal::AtLeast(PUTS)],
            _ => [Goal::None; 3],
        };
        let verbs = [("GET", &contender.gets), ("POST", &contender.posts), ("PUT", &contender.puts)];
        for ((verb, rounds), goal) in verbs.into_iter().zip(goals) {
            report.add(NAME, format!("{name}: {verb} of 1 KiB, {CLIENTS} clients"), rate(rounds), "/s", goal);
            let p99 = median_of(rounds, |one| one.load.p99());
            report.add(NAME, format!("{name}: {verb}, p99"), p99, "us", Goal::None);
            let micros = median_of(rounds, |one| one.micros);
            report.add(NAME, format!("{name}: {verb}, processor time"), micros, "us", Goal::None);
        }
    }
    report_ratios(report, all);
}

fn rate(rounds: &[Measured]) -> f64 {
    median_of(rounds, |one| one.load.per_second)
}

/// Reports the ratios of the first contender to the others.
fn report_ratios(report: &mut Report, all: &[Contender<'_>]) {
    let Some((one, others)) = all.split_first() else { return };
    for other in others {
        let per_second = |one: &Measured| one.load.per_second;
        match other.name {
            "split" => {
                let split = median_ratio(&other.gets, &one.gets, per_second);
                report.add(NAME, "GET, split of all in one", split, "x", Goal::AtLeast(SPLIT));
            }
            "baseline" => {
                let verbs = [
                    ("GET", &one.gets, &other.gets),
                    ("POST", &one.posts, &other.posts),
                    ("PUT", &one.puts, &other.puts),
                ];
                for (verb, now, before) in verbs {
                    let micros = median_ratio(now, before, |one| one.micros);
                    let figure = format!("{verb}, processor time of the baseline's");
                    report.add(NAME, figure, micros, "x", Goal::AtMost(MAX_BASELINE_RATIO));
                }
            }
            _ => {
                let kube = median_ratio(&one.gets, &other.gets, per_second);
                report.add(NAME, "GET, all in one of kube-apiserver", kube, "x", Goal::AtLeast(GETS_OF_KUBE));
            }
        }
    }
}
