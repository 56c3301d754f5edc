//! Effect of a webhook that never responds, or cannot be reached, on requests that it does not match: their p99 must equal
//! the p99 without the webhook, while other clients send requests that it matches.

use std::time::Duration;

use http::Method;
use portico_kit::tasks::TaskSet;
use tokio::time::{MissedTickBehavior, interval};

use super::configurations::{Subject, webhook_configuration};
use super::contender::Contender;
use super::{CLIENTS, NAME};
use crate::https::{Client, Endpoint};
use crate::kube::Kube;
use crate::load::Load;
use crate::portico::Portico;
use crate::process::{free_address, wait_until};
use crate::report::{Goal, Report, note};
use crate::statistics::{median_of, median_ratio};
use crate::{BenchContext, Failure};

/// Maximum p99, relative to that without the webhook.
const P99_RATIO: f64 = 1.25;
/// Clients that send requests which the webhook matches.
const MATCHED_CLIENTS: usize = 20;
/// Interval between two requests of each such client.
const INTERVAL: Duration = Duration::from_millis(50);
const TIMEOUT_SECONDS: u32 = 1;
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Loads without the webhook and with it.
type Rounds = Vec<[Load; 2]>;

pub(super) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let (portico, kube) = (Portico::start(setting).await?, Kube::start(setting).await?);
    let mut all = vec![Contender::portico(setting, &portico)?];
    if let Some(kube) = &kube {
        all.push(Contender::kube(setting, kube)?);
    }
    let dead = format!("https://{}", free_address()?);
    for (what, dead) in [("that never responds", None), ("that cannot be reached", Some(&dead))] {
        let mut rounds: Vec<Rounds> = all.iter().map(|_| Rounds::new()).collect();
        for round in 1..=setting.options.rounds {
            for (contender, rounds) in all.iter().zip(&mut rounds) {
                let url = dead.cloned().unwrap_or_else(|| contender.webhook.silent_url());
                let prefix = format!("{round}-{}", u8::from(dead.is_some()));
                rounds.push(measure_pair(setting, contender, url, &prefix).await?);
            }
        }
        for (contender, rounds) in all.iter().zip(&rounds) {
            report_rounds(report, contender, what, rounds);
        }
    }
    Ok(())
}

async fn measure_pair(
    setting: &BenchContext,
    contender: &Contender<'_>,
    url: String,
    prefix: &str,
) -> Result<[Load; 2], Failure> {
    let without = measure_with_matched_clients(setting, contender, format!("without-{prefix}")).await?;
    let mut client = contender.endpoint.client().await?;
    let webhook = [("dead.bench.example.com".to_owned(), url)];
    let body = webhook_configuration(setting, webhook.into_iter(), Subject::Other, TIMEOUT_SECONDS);
    client.send_ok(Method::POST, CONFIGURATIONS, body).await?;
    wait_until("the webhook is in effect", async || {
        Ok((!is_matched_allowed(&mut client).await?).then_some(()))
    })
    .await?;
    let with = measure_with_matched_clients(setting, contender, format!("with-{prefix}")).await?;
    client.send_ok(Method::DELETE, CONFIGURATIONS, String::new()).await?;
    wait_until("the webhook is no longer in effect", async || {
        Ok(is_matched_allowed(&mut client).await?.then_some(()))
    })
    .await?;
    note(&format!(
        "{:<15} p99 {:>6.0} us, with a dead webhook {:>6.0} us",
        contender.name,
        without.p99(),
        with.p99()
    ));
    Ok([without, with])
}

/// Measures creations that no webhook matches while other clients send requests that one may match.
async fn measure_with_matched_clients(
    setting: &BenchContext,
    contender: &Contender<'_>,
    prefix: String,
) -> Result<Load, Failure> {
    let tasks = TaskSet::new();
    for _ in 0..MATCHED_CLIENTS {
        let endpoint = contender.endpoint.clone();
        tasks.spawn_until_cancelled("matched-client", async move {
            // An error does not matter: only the other clients are measured.
            let _ = send_matched(&endpoint).await;
        });
    }
    let measured = contender.create(setting, prefix, CLIENTS).await;
    tasks.cancel();
    Ok(measured?.load)
}

/// Returns true if a creation that the webhook matches succeeds.
async fn is_matched_allowed(client: &mut Client) -> Result<bool, Failure> {
    let (collection, object) = Subject::Other.dry_run("matched");
    Ok(client.send(Method::POST, &collection, object).await?.0.is_success())
}

async fn send_matched(endpoint: &Endpoint) -> Result<(), Failure> {
    let mut client = endpoint.client().await?;
    let mut pace = interval(INTERVAL);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        is_matched_allowed(&mut client).await?;
    }
}

fn report_rounds(report: &mut Report, contender: &Contender<'_>, what: &str, rounds: &Rounds) {
    let (name, goal) = (contender.name, contender.goal(Goal::AtMost(P99_RATIO)));
    let p99 = median_of(rounds, |[without, _]| without.p99());
    report.add(NAME, format!("{name}: p99 of unmatched requests, no webhook"), p99, "us", Goal::None);
    let p99 = median_of(rounds, |[_, with]| with.p99());
    report.add(
        NAME,
        format!("{name}: p99 of unmatched requests, with a webhook {what}"),
        p99,
        "us",
        Goal::None,
    );
    let (without, with): (Vec<_>, Vec<_>) = rounds.iter().map(|[without, with]| (without, with)).unzip();
    let ratio = median_ratio(&with, &without, |load| load.p99());
    report.add(NAME, format!("{name}: p99 with a webhook {what}, of that without"), ratio, "x", goal);
}
