//! ConfigMaps of 1 KiB on SQLite and PostgreSQL: time of a start, of LIST pages with a selector and of single requests, and
//! memory, as the number of objects doubles. kube-apiserver is measured at the size that has goals.

use std::time::{Duration, Instant};

use http::Method;
use portico_tests::PostgresServer;
use serde::Deserialize;

use super::super::objects::{COLLECTION, config_map};
use crate::https::{Client, Endpoint};
use crate::kube::{Kube, SKIP_REASON};
use crate::load::{drive, get};
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::statistics::Latencies;
use crate::{BenchContext, Failure};

const NAME: &str = "scale";
/// Initial number of objects, doubled until `--most` is reached.
const MIN_OBJECTS: usize = 12_500;
/// Size that has goals.
const GOAL_OBJECTS: usize = 100_000;
const READY_MS: f64 = 1_000.0;
const RESIDENT_MIB: f64 = 300.0;
const PAGE_MS: f64 = 10.0;
const WRITERS: usize = 16;
/// Query with a selector that every object matches, so that each object is examined.
const PAGE: &str = "?limit=500&labelSelector=app%21%3Dnone";
/// Number of pages to read; covers all objects, several times if there are few.
const PAGES: usize = 400;
/// Query without a selector, whose pages contain the number of remaining items.
const COUNTED_PAGE: &str = "?limit=500";
const COUNTED_PAGES: usize = 40;

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    grow(setting, report, "SQLite", &[]).await?;
    match PostgresServer::start() {
        Some(server) => {
            let url = server.url(&server.create_database());
            grow(setting, report, "PostgreSQL", &["--database-url", &url]).await?;
        }
        None => report.skip("the same on PostgreSQL", "PostgreSQL is not installed"),
    }
    measure_kube(setting, report).await
}

/// Measures one engine at each size.
async fn grow(
    setting: &BenchContext,
    report: &mut Report,
    engine: &str,
    flags: &[&str],
) -> Result<(), Failure> {
    let most = setting.options.most;
    let budget = setting.options.cache_max_bytes.to_string();
    let flags: Vec<&str> = flags.iter().copied().chain(["--cache-max-bytes", &budget]).collect();
    let mut portico = Portico::with(setting, &flags).await?;
    let mut stored = 0;
    for size in sizes(most) {
        fill(&portico.endpoint(setting)?, stored..size).await?;
        stored = size;
        let (restarted, ready) = Portico::restart(setting, portico.end(), &flags).await?;
        portico = restarted;
        let what = format!("{engine}, {size}");
        let goal = |most| if size == GOAL_OBJECTS { Goal::AtMost(most) } else { Goal::None };
        report.add(NAME, format!("{what}: start until ready"), ready, "ms", goal(READY_MS));
        report.add(
            NAME,
            format!("{what}: resident when ready"),
            portico.process.resident()?,
            "MiB",
            Goal::None,
        );
        read(setting, report, &portico.endpoint(setting)?, &what, size).await?;
        let resident = portico.process.resident()?;
        report.add(NAME, format!("{what}: resident after all reads"), resident, "MiB", goal(RESIDENT_MIB));
    }
    Ok(())
}

/// Returns the sizes: doubled up to `most`, which is the last one.
fn sizes(most: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(MIN_OBJECTS), |size| size.checked_mul(2));
    let mut sizes: Vec<usize> = doubled.take_while(|size| *size < most).collect();
    sizes.push(most);
    sizes
}

/// Measures the first page, all pages, and single requests.
async fn read(
    setting: &BenchContext,
    report: &mut Report,
    endpoint: &Endpoint,
    what: &str,
    size: usize,
) -> Result<(), Failure> {
    let mut client = endpoint.client().await?;
    let start = Instant::now();
    page(&mut client, PAGE, "").await?;
    let first = start.elapsed().as_secs_f64() * 1e3;
    report.add(NAME, format!("{what}: the first page after a start"), first, "ms", Goal::None);
    let counted = pages(&mut client, COUNTED_PAGE, COUNTED_PAGES).await?;
    let pages = pages(&mut client, PAGE, PAGES).await?;
    let goal = if size == GOAL_OBJECTS { Goal::AtMost(PAGE_MS) } else { Goal::None };
    report.add(NAME, format!("{what}: a page of 500, p50"), pages.micros(0.5) / 1e3, "ms", Goal::None);
    report.add(NAME, format!("{what}: a page of 500, p99"), pages.micros(0.99) / 1e3, "ms", goal);
    for (part, name) in [(0.5, "p50"), (0.99, "p99")] {
        let page = format!("{what}: a page of 500 with remainingItemCount, {name}");
        report.add(NAME, page, counted.micros(part) / 1e3, "ms", Goal::None);
    }
    let time = Duration::from_secs(setting.options.seconds);
    let one = get(endpoint, &format!("{COLLECTION}/object-{:07}", size / 2), 1, time)
        .await?
        .require_success("GET")?;
    report.add(NAME, format!("{what}: GET, p50"), one.p50(), "us", Goal::None);
    report.add(NAME, format!("{what}: GET, p99"), one.p99(), "us", Goal::None);
    let post_endpoint = endpoint.clone();
    let post = drive(endpoint, 1, time, move |_, sent| {
        post_endpoint.json(Method::POST, COLLECTION, config_map(&format!("more-{size}-{sent}"), 'm'))
    });
    let post = post.await?.require_success("POST")?;
    report.add(NAME, format!("{what}: POST, p50"), post.p50(), "us", Goal::None);
    report.add(NAME, format!("{what}: POST, p99"), post.p99(), "us", Goal::None);
    Ok(())
}

/// Measures kube-apiserver at the size that has goals.
async fn measure_kube(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    if setting.options.most < GOAL_OBJECTS {
        return Ok(());
    }
    let Some(kube) = Kube::start(setting).await? else {
        report.skip("the same on kube-apiserver", SKIP_REASON);
        return Ok(());
    };
    let (endpoint, what) = (kube.endpoint(setting)?, format!("kube-apiserver and etcd, {GOAL_OBJECTS}"));
    fill(&endpoint, 0..GOAL_OBJECTS).await?;
    read(setting, report, &endpoint, &what, 0).await?;
    let resident = kube.server.resident()? + kube.etcd.resident()?;
    report.add(NAME, format!("{what}: resident"), resident, "MiB", Goal::None);
    Ok(())
}

async fn fill(endpoint: &Endpoint, range: std::ops::Range<usize>) -> Result<(), Failure> {
    let start = Instant::now();
    let writers = (0..WRITERS).map(|writer| {
        let range = range.clone();
        async move {
            let mut client = endpoint.client().await?;
            for at in range.skip(writer).step_by(WRITERS) {
                client.send_ok(Method::POST, COLLECTION, config_map(&format!("object-{at:07}"), 's')).await?;
            }
            Ok::<_, Failure>(())
        }
    });
    futures::future::try_join_all(writers).await?;
    note(&format!("{} objects written within {:.1} s", range.len(), start.elapsed().as_secs_f64()));
    Ok(())
}

/// Reads a page; returns the token of the next one, empty after the last.
async fn page(client: &mut Client, query: &str, token: &str) -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct List {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default, rename = "continue")]
        token: String,
    }
    let path = match token {
        "" => format!("{COLLECTION}{query}"),
        token => format!("{COLLECTION}{query}&continue={token}"),
    };
    let body = client.send_ok(Method::GET, &path, String::new()).await?;
    Ok(serde_json::from_slice::<List>(&body)?.metadata.token)
}

/// Reads pages in sequence, and starts again after the last one.
async fn pages(client: &mut Client, query: &str, count: usize) -> Result<Latencies, Failure> {
    let (mut nanos, mut token) = (Vec::new(), String::new());
    for _ in 0..count {
        let start = Instant::now();
        token = page(client, query, &token).await?;
        nanos.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(Latencies::new(nanos))
}
