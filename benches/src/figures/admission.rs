//! Creations of ConfigMaps of 1 KiB with webhooks and policies, compared with creations without any on the same server.
//!
//! The added time is the difference of the medians of two consecutive loads. Measuring starts when requests show that a
//! configuration is in effect, and the configuration is removed before the next one.

mod configurations;
mod contender;
mod force;
mod memory;
mod others;

use super::objects::OF_BASELINE;
use crate::kube::{Kube, WHY_NOT};
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::statistics::{median_of, median_ratio};
use crate::{Failure, Setting};
use configurations::{Configuration, Subject};
use contender::{Contender, Measured};

const NAME: &str = "admission";
/// Clients for rates; medians are measured with one client.
const CLIENTS: usize = 16;
/// Minimum rate with one webhook, relative to kube-apiserver's.
const OF_KUBE: f64 = 4.0;

/// A configuration, and its maximum addition to the time of a creation in microseconds.
struct Case {
    what: &'static str,
    configuration: Configuration,
    added: f64,
}

const CASES: [Case; 5] = [
    Case { what: "one webhook", configuration: Configuration::webhooks(1, Subject::Created), added: 250.0 },
    Case { what: "10 webhooks", configuration: Configuration::webhooks(10, Subject::Created), added: 600.0 },
    Case {
        what: "50 webhooks, none of which matches",
        configuration: Configuration::webhooks(50, Subject::Other),
        added: 10.0,
    },
    Case {
        what: "100 policies of three expressions",
        configuration: Configuration::policies(100, Subject::Created),
        added: 300.0,
    },
    Case {
        what: "50 policies, none of which matches",
        configuration: Configuration::policies(50, Subject::Other),
        added: 20.0,
    },
];

/// Measurements of one server, by round.
#[derive(Default)]
struct Rounds {
    /// 16 clients without webhooks and policies.
    plain: Vec<Measured>,
    /// 16 clients with one webhook.
    asked: Vec<Measured>,
    /// One client, for each case: without and with the configuration.
    pairs: [Vec<[Measured; 2]>; CASES.len()],
}

impl Rounds {
    async fn without(
        &mut self,
        setting: &Setting,
        contender: &Contender<'_>,
        round: usize,
    ) -> Result<(), Failure> {
        self.plain.push(contender.create(setting, format!("r{round}-plain"), CLIENTS).await?);
        Ok(())
    }

    /// Measures one client without and with the configuration of a case; for one webhook also 16 clients.
    async fn case(
        &mut self,
        setting: &Setting,
        contender: &Contender<'_>,
        round: usize,
        index: usize,
    ) -> Result<(), Failure> {
        let Case { what, configuration, .. } = &CASES[index];
        let plain = contender.create(setting, format!("r{round}-{index}-without"), 1).await?;
        let mut client = contender.endpoint.client().await?;
        let applied = force::apply(setting, &mut client, &contender.webhook, configuration).await?;
        let asked = contender.create(setting, format!("r{round}-{index}-with"), 1).await?;
        note(&format!(
            "round {round}: {:<15} {what:<36} {:>6.0} us + {:>5.0}, processor {:>5.0} us + {:>5.0}",
            contender.name,
            plain.load.p50(),
            asked.load.p50() - plain.load.p50(),
            plain.micros,
            asked.micros - plain.micros,
        ));
        self.pairs[index].push([plain, asked]);
        if index == 0 {
            self.asked.push(contender.create(setting, format!("r{round}-many"), CLIENTS).await?);
        }
        applied.remove(&mut client, &contender.webhook).await
    }
}

pub(crate) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    creations(setting, report).await?;
    others::measure(setting, report).await?;
    memory::measure(setting, report).await
}

async fn creations(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let baseline = Portico::baseline(setting).await?;
    let kube = Kube::start(setting).await?;
    let mut all = vec![(Contender::portico(setting, &portico)?, Rounds::default())];
    match &kube {
        Some(kube) => all.push((Contender::kube(setting, kube)?, Rounds::default())),
        None => report.skip("the same on kube-apiserver", WHY_NOT),
    }
    let mut before = Vec::new();
    if let Some(portico) = &baseline {
        before.push((Contender::baseline(setting, portico)?, Rounds::default()));
    }
    for round in 1..=setting.options.rounds {
        for (contender, rounds) in all.iter_mut().chain(&mut before) {
            rounds.without(setting, contender, round).await?;
        }
        for index in 0..CASES.len() {
            for (contender, rounds) in &mut all {
                rounds.case(setting, contender, round, index).await?;
            }
        }
    }
    for (contender, rounds) in &all {
        report_rounds(report, contender, rounds);
    }
    ratios(report, &all, &before);
    Ok(())
}

fn report_rounds(report: &mut Report, contender: &Contender<'_>, rounds: &Rounds) {
    let name = contender.name;
    for (case, pairs) in CASES.iter().zip(&rounds.pairs) {
        let p50 = median_of(pairs, |[plain, asked]| asked.load.p50() - plain.load.p50());
        let goal = contender.goal(Goal::AtMost(case.added));
        report.add(NAME, format!("{name}: {}, added at p50", case.what), p50, "us", goal);
        let p99 = median_of(pairs, |[plain, asked]| asked.load.p99() - plain.load.p99());
        report.add(NAME, format!("{name}: - at p99"), p99, "us", Goal::None);
        let micros = median_of(pairs, |[plain, asked]| asked.micros - plain.micros);
        report.add(NAME, format!("{name}: - processor time"), micros, "us", Goal::None);
    }
    for (what, rounds) in [("no webhook", &rounds.plain), ("one webhook", &rounds.asked)] {
        let rate = median_of(rounds, |one| one.load.per_second);
        report.add(NAME, format!("{name}: POST, {CLIENTS} clients, {what}"), rate, "/s", Goal::None);
        let micros = median_of(rounds, |one| one.micros);
        report.add(NAME, format!("{name}: - processor time"), micros, "us", Goal::None);
    }
}

/// Reports the ratios of Portico to kube-apiserver and to the baseline.
fn ratios(report: &mut Report, all: &[(Contender<'_>, Rounds)], before: &[(Contender<'_>, Rounds)]) {
    if let [(_, portico), (_, kube)] = all {
        let ratio = median_ratio(&portico.asked, &kube.asked, |one| one.load.per_second);
        report.add(NAME, "one webhook: rate, of kube-apiserver's", ratio, "x", Goal::AtLeast(OF_KUBE));
    }
    if let ([(_, portico), ..], [(_, before)]) = (all, before) {
        let ratio = median_ratio(&portico.plain, &before.plain, |one| one.micros);
        let figure = "no webhook, no policy: processor time, of the baseline's";
        report.add(NAME, figure, ratio, "x", Goal::AtMost(OF_BASELINE));
    }
}
