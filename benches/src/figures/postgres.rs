//! One and two control services on a PostgreSQL database: creations, reads, and watches through the other one, compared with
//! SQLite and kube-apiserver.

use std::time::Duration;

use futures::future::try_join_all;
use http::Method;
use portico_tests::PostgresServer;

use super::objects::{COLLECTION, config_map};
use super::watch::{self, FEW};
use crate::https::Endpoint;
use crate::kube::{Kube, SKIP_REASON};
use crate::load::{Load, drive, get};
use crate::portico::Portico;
use crate::process::Process;
use crate::report::{Goal, Report, note};
use crate::statistics::median_of;
use crate::{BenchContext, Failure};

const NAME: &str = "postgres";
/// Number of clients, independent of the number of control services.
const CLIENTS: usize = 64;
const POSTS: f64 = 3_000.0;
/// Minimum creations of two control services, relative to one.
const RATE_TO_ONE: f64 = 1.0;
const WATCH_MS: f64 = 20.0;

/// Servers of the same objects, and their measurements by round.
struct Contender<'a> {
    name: &'static str,
    endpoints: Vec<Endpoint>,
    processes: Vec<&'a Process>,
    posts: Vec<Measured>,
    gets: Vec<Measured>,
}

struct Measured {
    per_second: f64,
    p99: f64,
    /// Processor time per request in microseconds.
    micros: f64,
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, endpoints: Vec<Endpoint>, processes: Vec<&'a Process>) -> Self {
        Self { name, endpoints, processes, posts: Vec::new(), gets: Vec::new() }
    }

    fn processor_time(&self) -> Result<Duration, Failure> {
        self.processes.iter().map(|process| process.processor_time()).sum()
    }

    /// Runs a load with clients spread over all endpoints.
    async fn measure(
        &self,
        what: &str,
        load: impl AsyncFn(usize, &Endpoint, usize) -> Result<Load, Failure>,
    ) -> Result<Measured, Failure> {
        let (before, clients) = (self.processor_time()?, CLIENTS / self.endpoints.len());
        let loads = self.endpoints.iter().enumerate().map(|(at, endpoint)| load(at, endpoint, clients));
        let loads = try_join_all(loads).await?;
        let loads =
            loads.into_iter().map(|load| load.require_success(what)).collect::<Result<Vec<_>, _>>()?;
        let sent: f64 = loads.iter().map(Load::response_count).sum();
        Ok(Measured {
            per_second: loads.iter().map(|load| load.per_second).sum(),
            p99: loads.iter().map(Load::p99).fold(0.0, f64::max),
            micros: (self.processor_time()? - before).as_secs_f64() * 1e6 / sent,
        })
    }

    async fn round(&mut self, time: Duration, round: usize) -> Result<(), Failure> {
        let posts = self.measure("POST", async |at, endpoint: &Endpoint, clients| {
            let maker = endpoint.clone();
            drive(endpoint, clients, time, move |client, sent| {
                let name = format!("r{round}-{at}-{client}-{sent}");
                maker.json(Method::POST, COLLECTION, config_map(&name, 'p'))
            })
            .await
        });
        let posts = posts.await?;
        let read = format!("{COLLECTION}/read");
        let gets = self.measure("GET", async |_, endpoint: &Endpoint, clients| {
            get(endpoint, &read, clients, time).await
        });
        let gets = gets.await?;
        note(&format!(
            "round {round}: {:<24} POST {:>6.0}/s {:>4.0} us each  GET {:>6.0}/s {:>4.0} us each",
            self.name, posts.per_second, posts.micros, gets.per_second, gets.micros
        ));
        self.posts.push(posts);
        self.gets.push(gets);
        Ok(())
    }
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let Some(server) = PostgresServer::start() else {
        report.skip("control services on PostgreSQL", "it is not installed");
        return Ok(());
    };
    let (alone, shared) = (server.url(&server.create_database()), server.url(&server.create_database()));
    let one = Portico::with(setting, &["--database-url", &alone]).await?;
    let first = Portico::with(setting, &["--database-url", &shared]).await?;
    let second = Portico::with(setting, &["--database-url", &shared]).await?;
    let sqlite = Portico::start(setting).await?;
    let kube = Kube::start(setting).await?;
    let mut all = vec![
        Contender::new("one on PostgreSQL", vec![one.endpoint(setting)?], vec![&one.process]),
        Contender::new(
            "two on one PostgreSQL",
            vec![first.endpoint(setting)?, second.endpoint(setting)?],
            vec![&first.process, &second.process],
        ),
        Contender::new("SQLite", vec![sqlite.endpoint(setting)?], vec![&sqlite.process]),
    ];
    match &kube {
        Some(kube) => {
            let processes = vec![&kube.server, &kube.etcd];
            all.push(Contender::new("kube-apiserver and etcd", vec![kube.endpoint(setting)?], processes));
        }
        None => report.skip("the same on kube-apiserver", SKIP_REASON),
    }
    for contender in &all {
        let mut client = contender.endpoints[0].client().await?;
        client.send_ok(Method::POST, COLLECTION, config_map("read", 'r')).await?;
    }
    let time = Duration::from_secs(setting.options.seconds);
    for round in 1..=setting.options.rounds {
        for contender in &mut all {
            contender.round(time, round).await?;
        }
    }
    report_contenders(report, &all);
    let endpoints = [&first.endpoint(setting)?, &second.endpoint(setting)?];
    let seen = watch::round(setting, endpoints, &second.process, FEW).await?;
    let what = "50 watchers of one, 50 creations/s through the other";
    report.add(NAME, format!("{what}: p50 of an event"), seen.p50_ms, "ms", Goal::None);
    report.add(NAME, format!("{what}: p99 of an event"), seen.p99_ms, "ms", Goal::AtMost(WATCH_MS));
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 events")]
    report.add(NAME, format!("{what}: lost events"), seen.lost as f64, "", Goal::AtMost(0.0));
    Ok(())
}

fn report_contenders(report: &mut Report, all: &[Contender<'_>]) {
    let rate = |rounds: &[Measured]| median_of(rounds, |one| one.per_second);
    for contender in all {
        let name = contender.name;
        for (verb, rounds) in [("POST", &contender.posts), ("GET", &contender.gets)] {
            let goal = if (name, verb) == (all[0].name, "POST") { Goal::AtLeast(POSTS) } else { Goal::None };
            report.add(NAME, format!("{name}: {verb} of 1 KiB, {CLIENTS} clients"), rate(rounds), "/s", goal);
            report.add(
                NAME,
                format!("{name}: {verb}, p99"),
                median_of(rounds, |one| one.p99),
                "us",
                Goal::None,
            );
            let micros = median_of(rounds, |one| one.micros);
            report.add(NAME, format!("{name}: {verb}, processor time"), micros, "us", Goal::None);
        }
    }
    let of_one = rate(&all[1].posts) / rate(&all[0].posts);
    report.add(NAME, "POST, two control services of one", of_one, "x", Goal::AtLeast(RATE_TO_ONE));
}
