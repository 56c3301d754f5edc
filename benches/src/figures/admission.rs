//! Creations of ConfigMaps of 1 KiB with webhooks and policies, compared with creations without any on the same server.
//!
//! The added time is the difference of the medians of two consecutive loads. Measuring starts when requests show that a
//! configuration is in effect, and the configuration is removed before the next one.

mod activation;
mod configurations;
mod contender;
mod memory;
mod unmatched_requests;

use super::objects::MAX_BASELINE_RATIO;
use crate::kube::{Kube, SKIP_REASON};
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::statistics::{median_of, median_ratio};
use crate::{BenchContext, Failure};
use configurations::{Configuration, Subject};
use contender::{Contender, Measured};

const NAME: &str = "admission";
/// Clients for rates; medians are measured with one client.
const CLIENTS: usize = 16;
/// Minimum rate with one webhook, relative to kube-apiserver's.
const RATE_TO_KUBE: f64 = 4.0;

/// A configuration, and its maximum addition to the time of a creation in microseconds.
struct Case {
    name: &'static str,
    configuration: Configuration,
    max_added: f64,
}

const CASES: [Case; 5] = [
    Case {
        name: "one webhook",
        configuration: Configuration::webhooks(1, Subject::Created),
        max_added: 250.0,
    },
    Case {
        name: "10 webhooks",
        configuration: Configuration::webhooks(10, Subject::Created),
        max_added: 600.0,
    },
    Case {
        name: "50 webhooks, none of which matches",
        configuration: Configuration::webhooks(50, Subject::Other),
        max_added: 10.0,
    },
    Case {
        name: "100 policies of three expressions",
        configuration: Configuration::policies(100, Subject::Created),
        max_added: 300.0,
    },
    Case {
        name: "50 policies, none of which matches",
        configuration: Configuration::policies(50, Subject::Other),
        max_added: 20.0,
    },
];

/// Measurements of one server, by round.
#[derive(Default)]
struct Rounds {
    /// 16 clients without webhooks and policies.
    plain: Vec<Measured>,
    /// 16 clients with one webhook.
    one_webhook: Vec<Measured>,
    /// One client, for each case: without and with the configuration.
    pairs: [Vec<[Measured; 2]>; CASES.len()],
}

impl Rounds {
    async fn measure_plain(
        &mut self,
        setting: &BenchContext,
        contender: &Contender<'_>,
        round: usize,
    ) -> Result<(), Failure> {
        self.plain.push(contender.create(setting, format!("r{round}-plain"), CLIENTS).await?);
        Ok(())
    }

    /// Measures one client without and with the configuration of a case; for one webhook also 16 clients.
    async fn measure_case(
        &mut self,
        setting: &BenchContext,
        contender: &Contender<'_>,
        round: usize,
        index: usize,
    ) -> Result<(), Failure> {
        let Case { name, configuration, .. } = &CASES[index];
        let plain = contender.create(setting, format!("r{round}-{index}-without"), 1).await?;
        let mut client = contender.endpoint.client().await?;
        let applied = activation::apply(setting, &mut client, &contender.webhook, configuration).await?;
        let matched = contender.create(setting, format!("r{round}-{index}-with"), 1).await?;
        note(&format!(
            "round {round}: {:<15} {name:<36} {:>6.0} us + {:>5.0}, processor {:>5.0} us + {:>5.0}",
            contender.name,
            plain.load.p50(),
            matched.load.p50() - plain.load.p50(),
            plain.micros,
            matched.micros - plain.micros,
        ));
        self.pairs[index].push([plain, matched]);
        if index == 0 {
            self.one_webhook.push(contender.create(setting, format!("r{round}-many"), CLIENTS).await?);
        }
        applied.remove(&mut client, &contender.webhook).await
    }
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    creations(setting, report).await?;
    unmatched_requests::measure(setting, report).await?;
    memory::measure(setting, report).await
}

async fn creations(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let baseline = Portico::baseline(setting).await?;
    let kube = Kube::start(setting).await?;
    let mut all = vec![(Contender::portico(setting, &portico)?, Rounds::default())];
    match &kube {
        Some(kube) => all.push((Contender::kube(setting, kube)?, Rounds::default())),
        None => report.skip("the same on kube-apiserver", SKIP_REASON),
    }
    let mut before = Vec::new();
    if let Some(portico) = &baseline {
        before.push((Contender::baseline(setting, portico)?, Rounds::default()));
    }
    for round in 1..=setting.options.rounds {
        for (contender, rounds) in all.iter_mut().chain(&mut before) {
            rounds.measure_plain(setting, contender, round).await?;
        }
        for index in 0..CASES.len() {
            for (contender, rounds) in &mut all {
                rounds.measure_case(setting, contender, round, index).await?;
            }
        }
    }
    for (contender, rounds) in &all {
        report_rounds(report, contender, rounds);
    }
    report_ratios(report, &all, &before);
    Ok(())
}

fn report_rounds(report: &mut Report, contender: &Contender<'_>, rounds: &Rounds) {
    let name = contender.name;
    for (case, pairs) in CASES.iter().zip(&rounds.pairs) {
        let p50 = median_of(pairs, |[plain, matched]| matched.load.p50() - plain.load.p50());
        let goal = contender.goal(Goal::AtMost(case.max_added));
        report.add(NAME, format!("{name}: {}, added at p50", case.name), p50, "us", goal);
        let p99 = median_of(pairs, |[plain, matched]| matched.load.p99() - plain.load.p99());
        report.add(NAME, format!("{name}: - at p99"), p99, "us", Goal::None);
        let micros = median_of(pairs, |[plain, matched]| matched.micros - plain.micros);
        report.add(NAME, format!("{name}: - processor time"), micros, "us", Goal::None);
    }
    for (what, rounds) in [("no webhook", &rounds.plain), ("one webhook", &rounds.one_webhook)] {
        let rate = median_of(rounds, |one| one.load.per_second);
        report.add(NAME, format!("{name}: POST, {CLIENTS} clients, {what}"), rate, "/s", Goal::None);
        let micros = median_of(rounds, |one| one.micros);
        report.add(NAME, format!("{name}: - processor time"), micros, "us", Goal::None);
    }
}

/// Reports the ratios of Portico to kube-apiserver and to the baseline.
fn report_ratios(report: &mut Report, all: &[(Contender<'_>, Rounds)], before: &[(Contender<'_>, Rounds)]) {
    if let [(_, portico), (_, kube)] = all {
        let ratio = median_ratio(&portico.one_webhook, &kube.one_webhook, |one| one.load.per_second);
        report.add(NAME, "one webhook: rate, of kube-apiserver's", ratio, "x", Goal::AtLeast(RATE_TO_KUBE));
    }
    if let ([(_, portico), ..], [(_, before)]) = (all, before) {
        let ratio = median_ratio(&portico.plain, &before.plain, |one| one.micros);
        let figure = "no webhook, no policy: processor time, of the baseline's";
        report.add(NAME, figure, ratio, "x", Goal::AtMost(MAX_BASELINE_RATIO));
    }
}
