//! Creations of APIServices by gRPC: durable creations per second, and the time until the last condition is written.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use portico_proto::client::Client;

use crate::portico::Portico;
use crate::registrations::{CreationTimes, Registration, create, wait_checked};
use crate::report::{Goal, Report, note};
use crate::statistics::{Latencies, median_of};
use crate::{BenchContext, Failure};

const NAME: &str = "create";
const CLIENTS: usize = 64;
const MANY_PER_SECOND: f64 = 8000.0;
const ONE_PER_SECOND: f64 = 1500.0;
const CONDITIONS_SECONDS: f64 = 10.0;
/// Maximum number of rounds, which are long and write a lot.
const MAX_ROUNDS: usize = 5;
/// Creations of the single client.
const SINGLE: usize = 3000;

struct Round {
    many: f64,
    p99_ms: f64,
    one: f64,
    conditions: f64,
    resident: f64,
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let mut rounds = Vec::new();
    for at in 1..=setting.options.rounds.min(MAX_ROUNDS) {
        let round = round(setting).await?;
        note(&format!(
            "round {at}: {:.0}/s with 64 clients (p99 {:.1} ms), conditions after {:.1} s, {:.0}/s with one, {:.0} MiB",
            round.many, round.p99_ms, round.conditions, round.one, round.resident
        ));
        rounds.push(round);
    }
    let objects = setting.options.objects;
    let many = median_of(&rounds, |round| round.many);
    let what = format!("{CLIENTS} clients, {objects} objects, acknowledged");
    report.add(NAME, what, many, "/s", Goal::AtLeast(MANY_PER_SECOND));
    report.add(
        NAME,
        "64 clients, p99 of a creation",
        median_of(&rounds, |round| round.p99_ms),
        "ms",
        Goal::None,
    );
    let conditions = median_of(&rounds, |round| round.conditions);
    let goal = Goal::AtMost(CONDITIONS_SECONDS);
    report.add(NAME, "last condition written after the last creation", conditions, "s", goal);
    let one = median_of(&rounds, |round| round.one);
    report.add(NAME, "one client", one, "/s", Goal::AtLeast(ONE_PER_SECOND));
    report.add(
        NAME,
        "resident with all of them",
        median_of(&rounds, |round| round.resident),
        "MiB",
        Goal::None,
    );
    let sync = sync_latency(setting)?;
    report.add(NAME, "this disk: write and sync of 4 KiB, p50", sync.micros(0.5), "us", Goal::None);
    Ok(())
}

async fn round(setting: &BenchContext) -> Result<Round, Failure> {
    let portico = Portico::start(setting).await?;
    let ca = setting.certificates.ca_pem();
    let register = |prefix: &'static str| {
        move |at: usize| Registration::without_backend(format!("{prefix}{at}.example.com"), ca)
    };
    let (single, objects) = (portico.control()?, setting.options.objects);
    let one = std::slice::from_ref(&single);
    let one = create(one, 1, (0..SINGLE).map(register("single")).collect()).await?;
    wait_checked(&single, SINGLE).await?;

    let connections = connections(setting, &portico)?;
    let many = create(&connections, CLIENTS, (0..objects).map(register("many")).collect()).await?;
    let written = Instant::now();
    wait_checked(&single, SINGLE + objects).await?;
    let conditions = written.elapsed().as_secs_f64();
    let resident = portico.process.resident()?;
    let p99_ms = many.latencies.micros(0.99) / 1e3;
    Ok(Round { many: rate(&many), p99_ms, one: rate(&one), conditions, resident })
}

fn connections(setting: &BenchContext, portico: &Portico) -> Result<Vec<Client>, Failure> {
    (0..setting.options.connections.clamp(1, CLIENTS)).map(|_| portico.control()).collect()
}

fn rate(created: &CreationTimes) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 objects")]
    let count = created.latencies.count() as f64;
    count / created.time.as_secs_f64()
}

/// Measures the minimum latency of a durable write on this machine.
fn sync_latency(setting: &BenchContext) -> Result<Latencies, Failure> {
    let mut file = File::create(setting.new_folder("sync-")?.join("file"))?;
    let mut nanos = Vec::new();
    for _ in 0..200 {
        let start = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        nanos.push(u64::try_from(start.elapsed().as_nanos())?);
    }
    Ok(Latencies::new(nanos))
}
