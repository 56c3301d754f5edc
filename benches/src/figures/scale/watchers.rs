//! Ten thousand watchers on a hundred connections of a facade, and the effect of its restart. Compared with kube-apiserver.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::try_join_all;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use portico_kit::tasks::TaskSet;
use tokio::sync::mpsc;

use super::super::objects::config_map;
use crate::https::{Client, Endpoint};
use crate::kube::{Kube, SKIP_REASON};
use crate::portico::Portico;
use crate::process::{Process, free_address, wait_until};
use crate::report::{Goal, Report};
use crate::statistics::Latencies;
use crate::{BenchContext, Failure};

const NAME: &str = "scale";
/// Number of namespaces; each has a connection whose watches watch the namespace: an event goes to all watches of one connection.
const NAMESPACES: usize = 100;
const WATCHES: usize = 100;
const PER_SECOND: u32 = 50;
const P99_MS: f64 = 100.0;
const RESUMED_MS: f64 = 3_000.0;
/// Time to wait for events after the last creation.
const GRACE: Duration = Duration::from_secs(10);

/// State that all watchers share.
struct WatchState {
    events: mpsc::UnboundedSender<(usize, Instant)>,
    /// Newest revision that a watch received, one per namespace.
    revisions: Vec<AtomicI64>,
}

impl WatchState {
    /// Creates an empty state and the receiver of events.
    fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<(usize, Instant)>) {
        let (events, arrived) = mpsc::unbounded_channel();
        let revisions = (0..NAMESPACES).map(|_| AtomicI64::new(0)).collect();
        (Arc::new(Self { events, revisions }), arrived)
    }
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let server = Portico::server(setting).await?;
    let port = free_address()?.port();
    let facade = Portico::facade_on(setting, &server, port).await?;
    let (seen, mut arrived) = WatchState::new();
    let what = format!("{} watches on {NAMESPACES} connections", NAMESPACES * WATCHES);
    let wanted = Goals { p99: Goal::AtMost(P99_MS), lost: Goal::AtMost(0.0) };
    let watched = (facade.endpoint(setting)?, &facade.process);
    events(setting, report, &what, wanted, watched, &seen, &mut arrived).await?;
    restart(setting, report, (&server, facade, port), &seen, &mut arrived).await?;
    measure_kube(setting, report).await
}

/// Goals of the figures.
struct Goals {
    p99: Goal,
    lost: Goal,
}

/// Opens all watches, creates events for a while, and ends the watches.
async fn events(
    setting: &BenchContext,
    report: &mut Report,
    what: &str,
    goals: Goals,
    (endpoint, process): (Endpoint, &Process),
    seen: &Arc<WatchState>,
    arrived: &mut mpsc::UnboundedReceiver<(usize, Instant)>,
) -> Result<(), Failure> {
    let mut writer = endpoint.client().await?;
    for at in 0..NAMESPACES {
        let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"scale-{at}"}}}}"#);
        writer.send_ok(Method::POST, "/api/v1/namespaces", body).await?;
    }
    let before = process.resident()?;
    let tasks = watch_all(&endpoint, seen).await?;
    #[expect(clippy::cast_precision_loss, reason = "ten thousand")]
    let each = (process.resident()? - before) * 1024.0 / (NAMESPACES * WATCHES) as f64;
    report.add(NAME, format!("{what}: memory of each watch"), each, "KiB", Goal::None);
    let sent = create(&mut writer, setting).await?;
    let (latencies, lost) = collect(&sent, arrived).await;
    let figure = format!("{what}, {PER_SECOND} events/s: p99");
    report.add(NAME, figure, latencies.micros(0.99) / 1e3, "ms", goals.p99);
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 events")]
    report.add(NAME, format!("{what}: lost events"), lost as f64, "", goals.lost);
    tasks.cancel();
    Ok(())
}

/// Measures kube-apiserver with as many watches, and its restart: its cache starts empty, and watches that resume from a revision
/// other than the newest get an error that the revision is too old. It has no second process that could create objects during
/// the restart, so one object is created in each namespace when all watches are open again.
async fn measure_kube(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let Some(mut kube) = Kube::start(setting).await? else {
        report.skip("the same on kube-apiserver", SKIP_REASON);
        return Ok(());
    };
    let (seen, mut arrived) = WatchState::new();
    let what = format!("kube-apiserver, {} watches on {NAMESPACES} connections", NAMESPACES * WATCHES);
    let wanted = Goals { p99: Goal::None, lost: Goal::None };
    let watched = (kube.endpoint(setting)?, &kube.server);
    events(setting, report, &what, wanted, watched, &seen, &mut arrived).await?;
    kube.restart(setting).await?;
    let endpoint = kube.endpoint(setting)?;
    let tasks = watch_all(&endpoint, &seen).await?;
    let mut writer = endpoint.client().await?;
    for at in 0..NAMESPACES {
        make(&mut writer, at).await?;
    }
    let resumed = count_resumed(&mut arrived).await?;
    tasks.cancel();
    let figure = "kube-apiserver, watches that a restart does not send to list again";
    #[expect(clippy::cast_precision_loss, reason = "ten thousand")]
    report.add(NAME, figure, resumed as f64, "", Goal::None);
    Ok(())
}

/// Returns the number of watches that received their event within [`GRACE`]; each watch gets one.
async fn count_resumed(arrived: &mut mpsc::UnboundedReceiver<(usize, Instant)>) -> Result<usize, Failure> {
    let mut count = 0;
    let counted = async {
        while count < NAMESPACES * WATCHES {
            arrived.recv().await.ok_or("every watcher has ended")?;
            count += 1;
        }
        Ok::<_, Failure>(())
    };
    // Later events are counted as missing.
    tokio::time::timeout(GRACE, counted).await.unwrap_or(Ok(()))?;
    Ok(count)
}

/// Kills the facade, creates one object in each namespace, and starts the facade again; every watch
/// resumes from its last revision.
async fn restart(
    setting: &BenchContext,
    report: &mut Report,
    (server, facade, port): (&Portico, Portico, u16),
    seen: &Arc<WatchState>,
    arrived: &mut mpsc::UnboundedReceiver<(usize, Instant)>,
) -> Result<(), Failure> {
    drop(facade);
    let other = Portico::facade(setting, server).await?;
    let mut writer = other.endpoint(setting)?.client().await?;
    for at in 0..NAMESPACES {
        make(&mut writer, at).await?;
    }
    drop(other);
    let start = Instant::now();
    let facade = Portico::facade_on(setting, server, port).await?;
    let ready = start.elapsed();
    let tasks = watch_all(&facade.endpoint(setting)?, seen).await?;
    let resumed = count_resumed(arrived).await?;
    if resumed < NAMESPACES * WATCHES {
        return Err(format!("{resumed} watches have resumed").into());
    }
    let took = start.elapsed();
    tasks.cancel();
    report.add(NAME, "a facade's start until ready", ready.as_secs_f64() * 1e3, "ms", Goal::None);
    let figure = "a facade's start until all watches have what they missed";
    report.add(NAME, figure, took.as_secs_f64() * 1e3, "ms", Goal::AtMost(RESUMED_MS));
    Ok(())
}

/// Opens every watch from the newest revision received in its namespace; the watches end when the returned tasks are dropped.
async fn watch_all(endpoint: &Endpoint, seen: &Arc<WatchState>) -> Result<TaskSet, Failure> {
    let tasks = TaskSet::new();
    let opened = AtomicUsize::new(0);
    try_join_all((0..NAMESPACES).map(|namespace| {
        let (tasks, opened) = (tasks.clone(), &opened);
        async move {
            let mut sender = endpoint.http2(&tasks).await?;
            // One revision for all: the first watch may receive more before the last one is opened.
            let from = seen.revisions[namespace].load(Ordering::Relaxed);
            let from = if from > 0 { format!("&resourceVersion={from}") } else { String::new() };
            for _ in 0..WATCHES {
                let uri = format!("https://localhost{}?watch=true{from}", collection(namespace));
                let answer = sender.send_request(Request::get(uri).body(Full::<Bytes>::default())?).await?;
                if !answer.status().is_success() {
                    return Err(format!("watch: {}", answer.status()).into());
                }
                opened.fetch_add(1, Ordering::Relaxed);
                tasks.spawn_until_cancelled("watcher", read(answer.into_body(), namespace, seen.clone()));
            }
            Ok::<_, Failure>(())
        }
    }))
    .await?;
    let open = async || Ok((opened.load(Ordering::Relaxed) == NAMESPACES * WATCHES).then_some(()));
    wait_until("all watches are open", open).await?;
    Ok(tasks)
}

fn collection(namespace: usize) -> String {
    format!("/api/v1/namespaces/scale-{namespace}/configmaps")
}

async fn read(mut body: Incoming, namespace: usize, seen: Arc<WatchState>) {
    let mut text = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else { continue };
        text.extend_from_slice(data);
        let now = Instant::now();
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let number = |mark| number(&line, mark);
            if let Some(revision) = number("\"resourceVersion\":\"") {
                seen.revisions[namespace].fetch_max(revision, Ordering::Relaxed);
            }
            if let Some(name) = number("\"name\":\"event-").and_then(|name| usize::try_from(name).ok()) {
                // Fails only after the measurement, when the receiver is gone.
                let _ = seen.events.send((name, now));
            }
        }
    }
}

/// Returns the number that follows a mark.
fn number(line: &[u8], mark: &str) -> Option<i64> {
    let text = std::str::from_utf8(line).ok()?;
    let rest = &text[text.find(mark)? + mark.len()..];
    rest[..rest.find('"')?].parse().ok()
}

async fn make(writer: &mut Client, at: usize) -> Result<(), Failure> {
    writer
        .send_ok(Method::POST, &collection(at % NAMESPACES), config_map(&format!("event-{at}"), 'e'))
        .await?;
    Ok(())
}

/// Creates objects at a steady pace, in each namespace in turn; returns the time of each request.
async fn create(writer: &mut Client, setting: &BenchContext) -> Result<Vec<Instant>, Failure> {
    let mut pace = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
    let mut sent = Vec::new();
    // Other names than those created during a restart.
    for at in NAMESPACES..NAMESPACES + PER_SECOND as usize * usize::try_from(setting.options.seconds)? {
        pace.tick().await;
        sent.push(Instant::now());
        make(writer, at).await?;
    }
    Ok(sent)
}

/// Collects the latency of each event for each watcher, and the number of missing events.
async fn collect(
    sent: &[Instant],
    arrived: &mut mpsc::UnboundedReceiver<(usize, Instant)>,
) -> (Latencies, usize) {
    let (mut nanos, wanted) = (Vec::new(), sent.len() * WATCHES);
    let all = async {
        while nanos.len() < wanted {
            let Some((name, at)) = arrived.recv().await else { break };
            if let Some(sent) = name.checked_sub(NAMESPACES).and_then(|at| sent.get(at)) {
                nanos.push(u64::try_from(at.duration_since(*sent).as_nanos()).unwrap_or(u64::MAX));
            }
        }
    };
    // Missing events are reported as lost.
    let _late = tokio::time::timeout(GRACE, all).await;
    let lost = wanted - nanos.len();
    (Latencies::new(nanos), lost)
}
