//! `portico-benches soak`: objects, definitions, APIServices, tokens and watches are created and deleted, always with new names,
//! while the resident memory of the process is sampled: a leak shows as a slope (docs/internals/torture.md).

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use http::Method;
use tokio::time::{MissedTickBehavior, interval};

use crate::certificates::issue_from_new_ca;
use crate::https::Client;
use crate::portico::Portico;
use crate::registrations;
use crate::report::note;
use crate::{BenchContext, Failure};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const TOKEN: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Rounds for each one that also has a definition, an APIService and a token.
const ROUNDS_PER_HEAVY: u64 = 5;

/// Options of a soak run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Soak {
    /// Duration in minutes.
    #[arg(long, default_value_t = 15)]
    minutes: u64,
    /// Rounds a second.
    #[arg(long, default_value_t = 5)]
    rate: u32,
    /// Folder for the data folder. Default: the temporary folder.
    #[arg(long)]
    pub(crate) dir: Option<std::path::PathBuf>,
}

/// Runs the soak, and prints the samples and their slope.
pub(crate) async fn run(setting: &BenchContext, options: &Soak) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let endpoint = portico.endpoint(setting)?;
    let mut client = endpoint.client().await?;
    let (ca, _) = issue_from_new_ca("soak.example.com")?;
    let mut pace = interval(Duration::from_secs(1) / options.rate.max(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (start, time) = (Instant::now(), Duration::from_secs(options.minutes * 60));
    let (mut rounds, mut samples): (u64, Vec<(f64, f64)>) = (0, Vec::new());
    while start.elapsed() < time {
        pace.tick().await;
        object(&mut client, rounds).await?;
        if rounds.is_multiple_of(ROUNDS_PER_HEAVY) {
            definition(&mut client, rounds).await?;
            api_service(&mut client, rounds, &ca).await?;
            let body = r#"{"spec":{"expirationSeconds":600}}"#.to_owned();
            client.send_ok(Method::POST, TOKEN, body).await?;
            let mut watcher = endpoint.client().await?;
            let watch = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1");
            watcher.send_ok(Method::GET, &watch, String::new()).await?;
        }
        rounds += 1;
        if start.elapsed() >= SAMPLE_INTERVAL * u32::try_from(samples.len())? {
            let sample = (start.elapsed().as_secs_f64() / 60.0, portico.process.resident()?);
            note(&format!("{:>6.2} min {:>8.1} MiB resident, {rounds} rounds", sample.0, sample.1));
            samples.push(sample);
        }
    }
    let (all, late) = (slope(&samples), slope(&samples[samples.len() / 3..]));
    let mut out = std::io::stdout();
    let last = samples.last().map_or(0.0, |sample| sample.1);
    writeln!(
        out,
        "soak: {} min, {rounds} rounds ({} heavy)",
        options.minutes,
        rounds.div_ceil(ROUNDS_PER_HEAVY)
    )?;
    writeln!(out, "  resident at the end {last:.1} MiB")?;
    Ok(writeln!(out, "  slope {:.2} MiB an hour, of the last two thirds {:.2}", all * 60.0, late * 60.0)?)
}

async fn object(client: &mut Client, round: u64) -> Result<(), Failure> {
    let name = format!("soak-{round}");
    let object = |value: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"k":"{value}"}}}}"#
        )
    };
    let path = format!("{CONFIG_MAPS}/{name}");
    client.send_ok(Method::POST, CONFIG_MAPS, object("a")).await?;
    client.send_ok(Method::PUT, &path, object("b")).await?;
    client.send_ok(Method::DELETE, &path, String::new()).await?;
    Ok(())
}

/// Creates and deletes a definition, and an object of it if it is served by then.
async fn definition(client: &mut Client, round: u64) -> Result<(), Failure> {
    let (plural, group) = (format!("soaks{round}"), "soak.example.com");
    let body = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.{group}"}},"spec":{{"group":"{group}","scope":"Cluster","names":{{"plural":"{plural}","kind":"Soak{round}"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}]}}}}"#
    );
    client.send_ok(Method::POST, DEFINITIONS, body).await?;
    // The definition need not be served yet.
    let custom = format!(r#"{{"apiVersion":"{group}/v1","kind":"Soak{round}","metadata":{{"name":"one"}}}}"#);
    client.send(Method::POST, &format!("/apis/{group}/v1/{plural}"), custom).await?;
    client.send_ok(Method::DELETE, &format!("{DEFINITIONS}/{plural}.{group}"), String::new()).await?;
    Ok(())
}

async fn api_service(client: &mut Client, round: u64, ca: &str) -> Result<(), Failure> {
    let group = format!("soak{round}.example.com");
    client.send_ok(Method::POST, API_SERVICES, registrations::json(&group, ca, 443, None)).await?;
    client.send_ok(Method::DELETE, &format!("{API_SERVICES}/v1.{group}"), String::new()).await?;
    Ok(())
}

/// Returns the slope in MiB a minute, by least squares.
#[expect(clippy::cast_precision_loss, reason = "a few thousand samples")]
fn slope(samples: &[(f64, f64)]) -> f64 {
    let count = samples.len() as f64;
    let mean = |field: &dyn Fn(&(f64, f64)) -> f64| samples.iter().map(field).sum::<f64>() / count;
    let (x, y) = (mean(&|sample| sample.0), mean(&|sample| sample.1));
    let both: f64 = samples.iter().map(|sample| (sample.0 - x) * (sample.1 - y)).sum();
    let square: f64 = samples.iter().map(|sample| (sample.0 - x).powi(2)).sum();
    if square == 0.0 { 0.0 } else { both / square }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_slope_and_noise_has_none() {
        let line: Vec<(f64, f64)> = (0..10).map(|at| (f64::from(at), 3.0 + 2.0 * f64::from(at))).collect();
        assert!((slope(&line) - 2.0).abs() < 1e-9);
        let noise: Vec<(f64, f64)> = (0..100).map(|at| (f64::from(at), f64::from(at % 2))).collect();
        assert!(slope(&noise).abs() < 0.01);
        assert!(slope(&line[..1]).abs() < 1e-9);
    }
}
