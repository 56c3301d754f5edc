//! Creations of ConfigMaps by 20 clients in one namespace: with a quota that counts them, and without.

use std::time::Duration;

use http::Method;

use super::objects::config_map;
use crate::https::Endpoint;
use crate::load::{Load, drive};
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::statistics::{median_of, median_ratio};
use crate::{BenchContext, Failure};

const NAME: &str = "quota";
const CLIENTS: usize = 20;
/// Minimum rate with a quota, relative to the rate without.
const MIN_RATE_RATIO: f64 = 0.5;
/// Limit of the quota, which no round reaches.
const HARD: &str = "100000000";
const NAMESPACES: &str = "/api/v1/namespaces";

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let endpoint = portico.endpoint(setting)?;
    prepare(&endpoint).await?;
    let (mut free, mut counted) = (Vec::new(), Vec::new());
    for round in 1..=setting.options.rounds {
        free.push(create(setting, &endpoint, "free", round).await?);
        counted.push(create(setting, &endpoint, "counted", round).await?);
        let last = |loads: &[Load]| loads.last().map_or(0.0, |load| load.per_second);
        note(&format!("round {round}: {:>7.0}/s, with a quota {:>7.0}/s", last(&free), last(&counted)));
    }
    for (what, loads) in [("without a quota", &free), ("with a quota", &counted)] {
        let rate = median_of(loads, |load| load.per_second);
        report.add(NAME, format!("POST of 1 KiB, {CLIENTS} clients, {what}"), rate, "/s", Goal::None);
        report.add(NAME, format!("{what}, p99"), median_of(loads, Load::p99), "us", Goal::None);
    }
    let share = median_ratio(&counted, &free, |load| load.per_second);
    report.add(NAME, "with a quota of without", share, "x", Goal::AtLeast(MIN_RATE_RATIO));
    Ok(())
}

/// Creates two namespaces, one with a quota.
async fn prepare(endpoint: &Endpoint) -> Result<(), Failure> {
    let mut client = endpoint.client().await?;
    for name in ["free", "counted"] {
        let namespace = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        client.send_ok(Method::POST, NAMESPACES, namespace).await?;
    }
    let quotas = format!("{NAMESPACES}/counted/resourcequotas");
    let hard = format!(r#"{{"hard":{{"configmaps":"{HARD}"}}"#);
    let quota = |status: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"ResourceQuota","metadata":{{"name":"q"}},"spec":{hard}}}{status}}}"#
        )
    };
    client.send_ok(Method::POST, &quotas, quota("")).await?;
    let used = format!(r#","status":{hard},"used":{{"configmaps":"0"}}}}"#);
    client.send_ok(Method::PUT, &format!("{quotas}/q/status"), quota(&used)).await?;
    Ok(())
}

async fn create(
    setting: &BenchContext,
    endpoint: &Endpoint,
    namespace: &str,
    round: usize,
) -> Result<Load, Failure> {
    let time = Duration::from_secs(setting.options.seconds);
    let (maker, collection) = (endpoint.clone(), format!("{NAMESPACES}/{namespace}/configmaps"));
    let posts = drive(endpoint, CLIENTS, time, move |client, sent| {
        maker.json(Method::POST, &collection, config_map(&format!("r{round}-{client}-{sent}"), 'p'))
    });
    posts.await?.require_success("POST")
}
