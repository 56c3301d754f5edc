//! Control service and facade as two processes, compared with the all-in-one: proxied requests, and GETs of a local object.

use std::time::Duration;

use super::proxy::{CLIENTS, register};
use crate::backend::Backend;
use crate::https::Endpoint;
use crate::load::{Load, get};
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::statistics::{median_of, median_ratio};
use crate::{BenchContext, Failure};

const NAME: &str = "split";
/// Minimum rate for "the same": the usual difference between rounds.
const PROXIED: f64 = 0.95;
const LOCAL: f64 = 0.5;

#[derive(Default)]
struct Rounds {
    proxied: Vec<Load>,
    local: Vec<Load>,
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let backend = Backend::start(setting.certificates.backend_tls(&[])?).await?;
    let one = Portico::start(setting).await?;
    let registration = register(setting, &one, &backend).await?;
    let server = Portico::server(setting).await?;
    let facade = Portico::facade(setting, &server).await?;
    register(setting, &server, &backend).await?;

    let (one_door, split_door) = (one.endpoint(setting)?, facade.endpoint(setting)?);
    let local = format!("/apis/apiregistration.k8s.io/v1/apiservices/{}", registration.name());
    let (mut together, mut apart) = (Rounds::default(), Rounds::default());
    for round in 1..=setting.options.rounds {
        for (name, endpoint, rounds) in
            [("all in one", &one_door, &mut together), ("split", &split_door, &mut apart)]
        {
            load(setting, endpoint, &registration.path(), &local, rounds).await?;
            let last = |loads: &[Load]| loads.last().map_or(0.0, |load| load.per_second);
            let (proxied, local) = (last(&rounds.proxied), last(&rounds.local));
            note(&format!("round {round}: {name:<12} proxied {proxied:>8.0}/s, local object {local:>8.0}/s"));
        }
    }
    report_rounds(report, &together, &apart);
    let resident = server.process.resident()? + facade.process.resident()?;
    report.add(NAME, "both processes, resident after the load", resident, "MiB", Goal::None);
    Ok(())
}

async fn load(
    setting: &BenchContext,
    endpoint: &Endpoint,
    proxied: &str,
    local: &str,
    rounds: &mut Rounds,
) -> Result<(), Failure> {
    let time = Duration::from_secs(setting.options.seconds);
    rounds.proxied.push(get(endpoint, proxied, CLIENTS, time).await?.require_success(proxied)?);
    rounds.local.push(get(endpoint, local, CLIENTS, time).await?.require_success(local)?);
    Ok(())
}

fn report_rounds(report: &mut Report, all_in_one: &Rounds, split: &Rounds) {
    let rate = |loads: &[Load]| median_of(loads, |load| load.per_second);
    for (name, rounds) in [("all in one", all_in_one), ("split", split)] {
        report.add(NAME, format!("{name}: proxied, 32 clients"), rate(&rounds.proxied), "/s", Goal::None);
        report.add(NAME, format!("{name}: GET of an APIService"), rate(&rounds.local), "/s", Goal::None);
        let p99 = median_of(&rounds.local, Load::p99);
        report.add(NAME, format!("{name}: GET of an APIService, p99"), p99, "us", Goal::None);
    }
    let proxied = median_ratio(&split.proxied, &all_in_one.proxied, |load| load.per_second);
    report.add(NAME, "proxied, split of all in one", proxied, "x", Goal::AtLeast(PROXIED));
    let local = median_ratio(&split.local, &all_in_one.local, |load| load.per_second);
    report.add(NAME, "GET of a local object, split of all in one", local, "x", Goal::AtLeast(LOCAL));
}
