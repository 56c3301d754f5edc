//! ConfigMaps of 1 KiB over HTTPS: GET, POST and PUT by 16 clients; GETs beside a split pair as well.

use std::time::Duration;

use http::Method;

use crate::https::Door;
use crate::kube::{Kube, WHY_NOT};
use crate::load::{Load, drive, get};
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::statistics::{median_of, median_ratio};
use crate::{Failure, Setting};

const NAME: &str = "objects";
const CLIENTS: usize = 16;
const GETS: f64 = 15_000.0;
const GETS_OF_KUBE: f64 = 8.0;
const POSTS: f64 = 8_000.0;
const PUTS: f64 = 6_000.0;
const SPLIT: f64 = 0.5;
/// Where the objects live.
pub(super) const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";

/// A ConfigMap with one value of 1 KiB.
pub(super) fn config_map(name: &str, text: char) -> String {
    let value: String = std::iter::repeat_n(text, 1024).collect();
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"k":"{value}"}}}}"#
    )
}

#[derive(Default)]
struct Rounds {
    gets: Vec<Load>,
    posts: Vec<Load>,
    puts: Vec<Load>,
}

pub(crate) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let one = Portico::start(setting).await?;
    let server = Portico::server(setting).await?;
    let facade = Portico::facade(setting, &server).await?;
    let kube = Kube::start(setting).await?;
    let mut doors = vec![("all in one", one.door(setting)?), ("split", facade.door(setting)?)];
    match &kube {
        Some(kube) => doors.push(("kube-apiserver", kube.door(setting)?)),
        None => report.skip("the same on kube-apiserver", WHY_NOT),
    }
    for (_, door) in &doors {
        let mut client = door.client().await?;
        client.must(Method::POST, COLLECTION, config_map("read", 'r')).await?;
    }
    let mut measured: Vec<Rounds> = doors.iter().map(|_| Rounds::default()).collect();
    for round in 1..=setting.options.rounds {
        for ((name, door), rounds) in doors.iter().zip(&mut measured) {
            load(setting, door, round, rounds).await?;
            let last = |loads: &[Load]| loads.last().map_or(0.0, |load| load.per_second);
            let (gets, posts, puts) = (last(&rounds.gets), last(&rounds.posts), last(&rounds.puts));
            note(&format!(
                "round {round}: {name:<15} GET {gets:>7.0}/s POST {posts:>7.0}/s PUT {puts:>7.0}/s"
            ));
        }
    }
    say(report, &doors, &measured);
    report.add(NAME, "all in one: resident after the load", one.process.resident()?, "MiB", Goal::None);
    Ok(())
}

async fn load(setting: &Setting, door: &Door, round: usize, rounds: &mut Rounds) -> Result<(), Failure> {
    let time = Duration::from_secs(setting.options.seconds);
    let read = format!("{COLLECTION}/read");
    rounds.gets.push(get(door, &read, CLIENTS, time).await?.clean("GET")?);
    let maker = door.clone();
    let posts = drive(door, CLIENTS, time, move |client, sent| {
        maker.json(Method::POST, COLLECTION, config_map(&format!("r{round}-{client}-{sent}"), 'p'))
    });
    rounds.posts.push(posts.await?.clean("POST")?);
    let maker = door.clone();
    // Each client changes an object of its own that its POSTs have left: no conflicts, and never the same content.
    let puts = drive(door, CLIENTS, time, move |client, sent| {
        let name = format!("r{round}-{client}-0");
        let text = if sent % 2 == 0 { 'u' } else { 'v' };
        maker.json(Method::PUT, &format!("{COLLECTION}/{name}"), config_map(&name, text))
    });
    rounds.puts.push(puts.await?.clean("PUT")?);
    Ok(())
}

fn say(report: &mut Report, doors: &[(&str, Door)], measured: &[Rounds]) {
    let rate = |loads: &[Load]| median_of(loads, |load| load.per_second);
    for ((name, _), rounds) in doors.iter().zip(measured) {
        let goals = match *name {
            "all in one" => [Goal::AtLeast(GETS), Goal::AtLeast(POSTS), Goal::AtLeast(PUTS)],
            _ => [Goal::None; 3],
        };
        for ((verb, loads), goal) in
            [("GET", &rounds.gets), ("POST", &rounds.posts), ("PUT", &rounds.puts)].into_iter().zip(goals)
        {
            report.add(NAME, format!("{name}: {verb} of 1 KiB, {CLIENTS} clients"), rate(loads), "/s", goal);
            let p99 = median_of(loads, Load::p99);
            report.add(NAME, format!("{name}: {verb}, p99"), p99, "us", Goal::None);
        }
    }
    let gets = |at: usize| &measured[at].gets;
    let split = median_ratio(gets(1), gets(0), |load| load.per_second);
    report.add(NAME, "GET, split of all in one", split, "x", Goal::AtLeast(SPLIT));
    if measured.len() > 2 {
        let kube = median_ratio(gets(0), gets(2), |load| load.per_second);
        report.add(NAME, "GET, all in one of kube-apiserver", kube, "x", Goal::AtLeast(GETS_OF_KUBE));
    }
}
