//! Time from POST of an APIService to the first proxied 200, through one facade: without others, among 1,000 others, remote.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};

use crate::backend::Backend;
use crate::https::Client;
use crate::kube::{Kube, SKIP_REASON};
use crate::portico::Portico;
use crate::process::EVENT_TIMEOUT;
use crate::registrations::{self, Registration, create, wait_available};
use crate::report::{Goal, Report};
use crate::statistics::Latencies;
use crate::{BenchContext, Failure};

const NAME: &str = "first-request";
const COLLECTION: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// Registrations per figure.
const TIMES: usize = 200;
const OTHERS: usize = 1000;
const P50_MS: f64 = 4.0;
const P99_MS: f64 = 15.0;
const REMOTE_P50_MS: f64 = 10.0;
/// Pause between two registrations, so that the removal of one does not affect the next.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let backend = Backend::start(setting.certificates.backend_tls(&[])?).await?;
    measure_local(setting, report, &backend).await?;
    measure_remote(setting, report, &backend).await?;
    let Some(kube) = Kube::start(setting).await? else {
        report.skip("first request of kube-apiserver", SKIP_REASON);
        return Ok(());
    };
    let mut client = kube.endpoint(setting)?.client().await?;
    kube.create_service(&mut client, backend.address).await?;
    let latencies = series(setting, &mut client, &backend, "kube", false).await?;
    report_latencies(report, "kube-apiserver", &latencies, Goal::None, Goal::None);
    Ok(())
}

async fn measure_local(
    setting: &BenchContext,
    report: &mut Report,
    backend: &Backend,
) -> Result<(), Failure> {
    let portico = Portico::start(setting).await?;
    let mut client = portico.endpoint(setting)?.client().await?;
    let alone = series(setting, &mut client, backend, "alone", true).await?;
    report_latencies(report, "all in one", &alone, Goal::AtMost(P50_MS), Goal::AtMost(P99_MS));
    let control = portico.control()?;
    let ca = setting.certificates.ca_pem();
    let other = |at| Registration::for_url(format!("other{at}.example.com"), backend.url(), ca);
    create(std::slice::from_ref(&control), 16, (0..OTHERS).map(other).collect()).await?;
    wait_available(&control, OTHERS).await?;
    let among = series(setting, &mut client, backend, "among", true).await?;
    report_latencies(report, "all in one, 1,000 others", &among, Goal::AtMost(P50_MS), Goal::AtMost(P99_MS));
    Ok(())
}

async fn measure_remote(
    setting: &BenchContext,
    report: &mut Report,
    backend: &Backend,
) -> Result<(), Failure> {
    let server = Portico::server(setting).await?;
    let facade = Portico::facade(setting, &server).await?;
    let mut client = facade.endpoint(setting)?.client().await?;
    let latencies = series(setting, &mut client, backend, "remote", true).await?;
    report_latencies(report, "remote facade", &latencies, Goal::AtMost(REMOTE_P50_MS), Goal::None);
    Ok(())
}

fn report_latencies(report: &mut Report, what: &str, latencies: &Latencies, p50: Goal, p99: Goal) {
    report.add(NAME, format!("{what}: POST to proxied 200, p50"), latencies.micros(0.5) / 1e3, "ms", p50);
    report.add(NAME, format!("{what}: POST to proxied 200, p99"), latencies.micros(0.99) / 1e3, "ms", p99);
}

async fn series(
    setting: &BenchContext,
    client: &mut Client,
    backend: &Backend,
    prefix: &str,
    by_address: bool,
) -> Result<Latencies, Failure> {
    let url = backend.url();
    let mut nanos = Vec::new();
    for at in 0..TIMES {
        let group = format!("{prefix}{at}.example.com");
        let url = by_address.then_some(url.as_str());
        let body = registrations::json(&group, setting.certificates.ca_pem(), backend.address.port(), url);
        nanos.push(once(client, &group, body).await?);
        client.send_ok(Method::DELETE, &format!("{COLLECTION}/v1.{group}"), String::new()).await?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(Latencies::new(nanos))
}

/// Returns the nanoseconds of one registration.
async fn once(client: &mut Client, group: &str, body: String) -> Result<u64, Failure> {
    let path = format!("/apis/{group}/v1/things");
    let start = Instant::now();
    client.send_ok(Method::POST, COLLECTION, body).await?;
    while start.elapsed() < EVENT_TIMEOUT {
        if client.get(&path).await? == StatusCode::OK {
            return Ok(u64::try_from(start.elapsed().as_nanos())?);
        }
    }
    Err(format!("{path}: no 200 within {} s", EVENT_TIMEOUT.as_secs()).into())
}
