//! ConfigMaps of 1 KiB on SQLite and PostgreSQL: time of a start, of LIST pages with a selector and of single requests, and
//! memory, as the number of objects doubles. kube-apiserver is measured at the size that has goals.

use std::time::{Duration, Instant};

use http::Method;
use portico_tests::PostgresServer;
use serde::Deserialize;

use super::super::objects::{COLLECTION, config_map};
use crate::https::{Client, Endpoint};
use crate::kube::{Kube, WHY_NOT};
use crate::load::{drive, get};
use crate::portico::Portico;
use crate::report::{Goal, Report, note};
use crate::statistics::Latencies;
use crate::{Failure, Setting};

const NAME: &str = "scale";
/// Initial number of objects, doubled until `--most` is reached.
const FEWEST: usize = 12_500;
/// Size that has goals.
const WANTED: usize = 100_000;
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

pub(crate) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    grow(setting, report, "SQLite", &[]).await?;
    match PostgresServer::start() {
        Some(server) => {
            let url = server.url(&server.database());
            grow(setting, report, "PostgreSQL", &["--database-url", &url]).await?;
        }
        None => report.skip("the same on PostgreSQL", "it is not installed"),
    }
    beside(setting, report).await
}

/// Measures one engine at each size.
async fn grow(setting: &Setting, report: &mut Report, engine: &str, flags: &[&str]) -> Result<(), Failure> {
    let most = setting.options.most;
    let budget = setting.options.cache_max_bytes.to_string();
    let flags: Vec<&str> = flags.iter().copied().chain(["--cache-max-bytes", &budget]).collect();
    let mut portico = Portico::with(setting, &flags).await?;
    let mut stored = 0;
    for size in sizes(most) {
        fill(&portico.endpoint(setting)?, stored..size).await?;
        stored = size;
        let (again, ready) = Portico::again(setting, portico.end(), &flags).await?;
        portico = again;
        let what = format!("{engine}, {size}");
        let goal = |most| if size == WANTED { Goal::AtMost(most) } else { Goal::None };
        report.add(NAME, format!("{what}: start until ready"), ready, "ms", goal(READY_MS));
        report.add(NAME, format!("{what}: resident then"), portico.process.resident()?, "MiB", Goal::None);
        read(setting, report, &portico.endpoint(setting)?, &what, size).await?;
        let resident = portico.process.resident()?;
        report.add(NAME, format!("{what}: resident when all is read"), resident, "MiB", goal(RESIDENT_MIB));
    }
    Ok(())
}

/// Returns the sizes: doubled up to `most`, which is the last one.
fn sizes(most: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(FEWEST), |size| size.checked_mul(2));
    let mut sizes: Vec<usize> = doubled.take_while(|size| *size < most).collect();
    sizes.push(most);
    sizes
}

/// Measures the first page, all pages, and single requests.
async fn read(
    setting: &Setting,
    report: &mut Report,
    endpoint: &Endpoint,
    what: &str,
    size: usize,
) -> Result<(), Failure> {
    let mut client = endpoint.client().await?;
    let begun = Instant::now();
    page(&mut client, PAGE, "").await?;
    let first = begun.elapsed().as_secs_f64() * 1e3;
    report.add(NAME, format!("{what}: the first page after a start"), first, "ms", Goal::None);
    let counted = pages(&mut client, COUNTED_PAGE, COUNTED_PAGES).await?;
    let pages = pages(&mut client, PAGE, PAGES).await?;
    let goal = if size == WANTED { Goal::AtMost(PAGE_MS) } else { Goal::None };
    report.add(NAME, format!("{what}: a page of 500, p50"), pages.micros(0.5) / 1e3, "ms", Goal::None);
    report.add(NAME, format!("{what}: a page of 500, p99"), pages.micros(0.99) / 1e3, "ms", goal);
    for (part, name) in [(0.5, "p50"), (0.99, "p99")] {
        let page = format!("{what}: a page of 500 that says how many follow, {name}");
        report.add(NAME, page, counted.micros(part) / 1e3, "ms", Goal::None);
    }
    let time = Duration::from_secs(setting.options.seconds);
    let one = get(endpoint, &format!("{COLLECTION}/object-{:07}", size / 2), 1, time).await?.clean("GET")?;
    report.add(NAME, format!("{what}: GET, p50"), one.p50(), "us", Goal::None);
    report.add(NAME, format!("{what}: GET, p99"), one.p99(), "us", Goal::None);
    let maker = endpoint.clone();
    let post = drive(endpoint, 1, time, move |_, sent| {
        maker.json(Method::POST, COLLECTION, config_map(&format!("more-{size}-{sent}"), 'm'))
    });
    let post = post.await?.clean("POST")?;
    report.add(NAME, format!("{what}: POST, p50"), post.p50(), "us", Goal::None);
    report.add(NAME, format!("{what}: POST, p99"), post.p99(), "us", Goal::None);
    Ok(())
}

/// Measures kube-apiserver at the size that has goals.
async fn beside(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    if setting.options.most < WANTED {
        return Ok(());
    }
    let Some(kube) = Kube::start(setting).await? else {
        report.skip("the same on kube-apiserver", WHY_NOT);
        return Ok(());
    };
    let (endpoint, what) = (kube.endpoint(setting)?, format!("kube-apiserver and etcd, {WANTED}"));
    fill(&endpoint, 0..WANTED).await?;
    read(setting, report, &endpoint, &what, 0).await?;
    let resident = kube.server.resident()? + kube.etcd.resident()?;
    report.add(NAME, format!("{what}: resident"), resident, "MiB", Goal::None);
    Ok(())
}

async fn fill(endpoint: &Endpoint, which: std::ops::Range<usize>) -> Result<(), Failure> {
    let begun = Instant::now();
    let writers = (0..WRITERS).map(|writer| {
        let which = which.clone();
        async move {
            let mut client = endpoint.client().await?;
            for at in which.skip(writer).step_by(WRITERS) {
                client.must(Method::POST, COLLECTION, config_map(&format!("object-{at:07}"), 's')).await?;
            }
            Ok::<_, Failure>(())
        }
    });
    futures::future::try_join_all(writers).await?;
    note(&format!("{} objects written within {:.1} s", which.len(), begun.elapsed().as_secs_f64()));
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
    let body = client.must(Method::GET, &path, String::new()).await?;
    Ok(serde_json::from_slice::<List>(&body)?.metadata.token)
}

/// Reads pages in sequence, and starts again after the last one.
async fn pages(client: &mut Client, query: &str, count: usize) -> Result<Latencies, Failure> {
    let (mut nanos, mut token) = (Vec::new(), String::new());
    for _ in 0..count {
        let begun = Instant::now();
        token = page(client, query, &token).await?;
        nanos.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(Latencies::new(nanos))
}
