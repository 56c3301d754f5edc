//! Effect of 100 dead backends on requests to a live one: half refuse connections, half accept and never respond.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use portico_kit::tasks::TaskSet;
use portico_proto::client::Client;
use tokio::time::{MissedTickBehavior, interval};

use super::proxy::{CLIENTS, register};
use crate::backend::Backend;
use crate::https::Endpoint;
use crate::load::{Load, get};
use crate::portico::Portico;
use crate::process::free_address;
use crate::registrations::{Registration, create, delete, wait_checked};
use crate::report::{Goal, Report, note};
use crate::statistics::{median_of, median_ratio};
use crate::{BenchContext, Failure};

const NAME: &str = "dead-backends";
const DEAD: usize = 100;
const P99_RATIO: f64 = 1.25;
/// Interval between two requests to dead backends during the measurement.
const DEAD_REQUEST_INTERVAL: Duration = Duration::from_millis(10);

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let backend = Backend::start(setting.certificates.backend_tls(&[])?).await?;
    let portico = Portico::start(setting).await?;
    let live = register(setting, &portico, &backend).await?;
    let (endpoint, control) = (portico.endpoint(setting)?, portico.control()?);
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let dead = dead_registrations(setting, &silent)?;
    let time = Duration::from_secs(setting.options.seconds);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 1..=setting.options.rounds {
        without.push(get(&endpoint, &live.path(), CLIENTS, time).await?.require_success("live")?);
        with.push(load_with_dead_backends(&endpoint, &control, &live.path(), &dead, time).await?);
        for (name, loads) in [("alone", &without), ("with 100 dead", &with)] {
            let Some(load) = loads.last() else { continue };
            let (rate, p50, p99) = (load.per_second, load.p50(), load.p99());
            note(&format!("round {round}: {name:<16} {rate:>8.0}/s p50 {p50:>6.0} us p99 {p99:>6.0} us"));
        }
    }
    let (alone, with_dead) = (median_of(&without, Load::p99), median_of(&with, Load::p99));
    report.add(NAME, "p99 of a live backend, alone", alone, "us", Goal::None);
    report.add(NAME, "p99 of a live backend, with 100 dead backends", with_dead, "us", Goal::None);
    let ratio = median_ratio(&with, &without, Load::p99);
    report.add(NAME, "p99 with 100 dead backends, of p99 alone", ratio, "x", Goal::AtMost(P99_RATIO));
    let rates = median_ratio(&with, &without, |load| load.per_second);
    report.add(NAME, "requests per second with 100 dead backends, of rate alone", rates, "x", Goal::None);
    Ok(())
}

/// Returns registrations of unreachable backends.
fn dead_registrations(setting: &BenchContext, silent: &TcpListener) -> Result<Vec<Registration>, Failure> {
    let (silent, refusing) = (silent.local_addr()?, free_address()?);
    let at = |at| {
        let address = if at % 2 == 0 { silent } else { refusing };
        let group = format!("dead{at}.example.com");
        Registration::for_url(group, format!("https://{address}"), setting.certificates.ca_pem())
    };
    Ok((0..DEAD).map(at).collect())
}

async fn load_with_dead_backends(
    endpoint: &Endpoint,
    control: &Client,
    live: &str,
    dead: &[Registration],
    time: Duration,
) -> Result<Load, Failure> {
    create(std::slice::from_ref(control), 4, dead.to_vec()).await?;
    wait_checked(control, dead.len() + 1).await?;
    let tasks = TaskSet::new();
    let (other, paths) = (endpoint.clone(), dead.iter().map(Registration::path).collect());
    tasks.spawn_until_cancelled("dead-backend-requests", async move {
        // An error does not matter: only the live backend is measured.
        let _ = request_in_turn(&other, paths).await;
    });
    let load = get(endpoint, live, CLIENTS, time).await?.require_success("live, with 100 dead backends")?;
    tasks.cancel();
    delete(control, dead.iter().map(Registration::name)).await?;
    Ok(load)
}

async fn request_in_turn(endpoint: &Endpoint, paths: Vec<String>) -> Result<(), Failure> {
    let mut client = endpoint.client().await?;
    let mut pace = interval(DEAD_REQUEST_INTERVAL);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for path in paths.iter().cycle() {
        pace.tick().await;
        client.get(path).await?;
    }
    Ok(())
}
