//! Watches: time from the request of a creation until every watcher has the event; and memory per watch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use portico_kit::tasks::TaskSet;
use tokio::sync::mpsc;

use super::objects::{COLLECTION, config_map};
use crate::https::{Client, Endpoint};
use crate::kube::{Kube, SKIP_REASON};
use crate::portico::Portico;
use crate::process::Process;
use crate::report::{Goal, Report, note};
use crate::statistics::{Latencies, median, median_of};
use crate::{BenchContext, Failure};

const NAME: &str = "watch";
pub(super) const FEW: Scene = Scene { watchers: 50, per_second: 50, goal_ms: 5.0 };
const MANY: Scene = Scene { watchers: 1_000, per_second: 20, goal_ms: 50.0 };
const CONNECTION_KIB: f64 = 64.0;
/// Number of further watches, less than the streams that one connection may have.
const MORE_WATCHES: usize = 200;
const MORE_WATCHES_KIB: f64 = 12.0;
/// Time to wait for the last event after the last creation.
const GRACE: Duration = Duration::from_secs(10);

/// A number of watchers, each on a separate connection, and a rate of creations.
#[derive(Clone, Copy)]
pub(super) struct Scene {
    watchers: usize,
    per_second: u32,
    goal_ms: f64,
}

pub(super) struct Round {
    pub(super) p99_ms: f64,
    pub(super) p50_ms: f64,
    pub(super) lost: usize,
    connection_kib: f64,
}

pub(crate) async fn measure(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    for scene in [FEW, MANY] {
        let mut rounds = Vec::new();
        for at in 1..=setting.options.rounds.min(3) {
            let portico = Portico::start(setting).await?;
            let round = round(setting, [&portico.endpoint(setting)?; 2], &portico.process, scene).await?;
            note(&format!("round {at}: {} watchers, p99 {:.1} ms", scene.watchers, round.p99_ms));
            rounds.push(round);
        }
        report_rounds(report, scene, &rounds);
        match Kube::start(setting).await? {
            Some(kube) => {
                let round = round(setting, [&kube.endpoint(setting)?; 2], &kube.server, scene).await?;
                report_kube(report, scene, &round);
            }
            None => report.skip("watches of kube-apiserver", SKIP_REASON),
        }
    }
    measure_shared_connection(setting, report).await
}

/// Measures the memory of each watch after the first on one HTTP/2 connection.
async fn measure_shared_connection(setting: &BenchContext, report: &mut Report) -> Result<(), Failure> {
    let mut rounds = Vec::new();
    for _ in 0..setting.options.rounds.min(3) {
        let portico = Portico::start(setting).await?;
        let tasks = TaskSet::new();
        let mut sender = portico.endpoint(setting)?.http2(&tasks).await?;
        let mut open = async || {
            let request = Request::get(format!("https://localhost{COLLECTION}?watch=true"));
            let answer = sender.send_request(request.body(Full::default())?).await?;
            Ok::<_, Failure>(answer.into_body())
        };
        let mut watches = vec![open().await?];
        let before = portico.process.resident()?;
        for _ in 0..MORE_WATCHES {
            watches.push(open().await?);
        }
        #[expect(clippy::cast_precision_loss, reason = "two hundred")]
        rounds.push((portico.process.resident()? - before) * 1024.0 / MORE_WATCHES as f64);
        tasks.cancel();
    }
    let figure = "memory of a further watch on a connection";
    report.add(NAME, figure, median(&rounds), "KiB", Goal::AtMost(MORE_WATCHES_KIB));
    Ok(())
}

fn report_kube(report: &mut Report, scene: Scene, round: &Round) {
    let what = format!("kube-apiserver, {} watchers, {} creations/s", scene.watchers, scene.per_second);
    report.add(NAME, format!("{what}: p99 of an event"), round.p99_ms, "ms", Goal::None);
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 events")]
    report.add(NAME, format!("{what}: lost events"), round.lost as f64, "", Goal::None);
    report.add(NAME, format!("{what}: memory of a connection"), round.connection_kib, "KiB", Goal::None);
}

fn report_rounds(report: &mut Report, scene: Scene, rounds: &[Round]) {
    let Scene { watchers, per_second, goal_ms } = scene;
    let what = format!("{watchers} watchers, {per_second} creations/s");
    let p50 = median_of(rounds, |round| round.p50_ms);
    report.add(NAME, format!("{what}: p50 of an event"), p50, "ms", Goal::None);
    let p99 = median_of(rounds, |round| round.p99_ms);
    report.add(NAME, format!("{what}: p99 of an event"), p99, "ms", Goal::AtMost(goal_ms));
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 events")]
    let lost = median_of(rounds, |round| round.lost as f64);
    report.add(NAME, format!("{what}: lost events"), lost, "", Goal::AtMost(0.0));
    if watchers >= MANY.watchers {
        let kib = median_of(rounds, |round| round.connection_kib);
        let figure = "memory of a connection with a watch";
        report.add(NAME, figure, kib, "KiB", Goal::AtMost(CONNECTION_KIB));
    }
}

/// Creates objects through the first endpoint, watched through the second one, which is that of `server`.
pub(super) async fn round(
    setting: &BenchContext,
    [written, endpoint]: [&Endpoint; 2],
    server: &Process,
    scene: Scene,
) -> Result<Round, Failure> {
    let mut writer = written.client().await?;
    let revision = revision(&mut writer).await?;
    let before = server.resident()?;
    let tasks = TaskSet::new();
    let (seen, mut events) = mpsc::unbounded_channel();
    let path: Arc<str> =
        format!("{COLLECTION}?watch=true&allowWatchBookmarks=false&resourceVersion={revision}").into();
    for _ in 0..scene.watchers {
        let stream = open(endpoint, &path).await?;
        let seen = seen.clone();
        tasks.spawn_until_cancelled("watcher", read(stream, seen));
    }
    let watching = server.resident()?;
    let count = scene.per_second * u32::try_from(setting.options.seconds)?;
    let sent = create(&mut writer, scene.per_second, count).await?;
    let wanted = sent.len() * scene.watchers;
    let mut nanos = Vec::with_capacity(wanted);
    let collect = async {
        while nanos.len() < wanted {
            let Some((name, at)) = events.recv().await else { break };
            let sent: Option<&Instant> = sent.get::<usize>(name);
            if let Some(sent) = sent {
                nanos.push(u64::try_from(at.duration_since(*sent).as_nanos()).unwrap_or(u64::MAX));
            }
        }
    };
    // Missing events are reported as lost.
    let _late = tokio::time::timeout(GRACE, collect).await;
    tasks.cancel();
    let (lost, latencies) = (wanted - nanos.len(), Latencies::new(nanos));
    #[expect(clippy::cast_precision_loss, reason = "a thousand watchers")]
    let connection_kib = (watching - before) * 1024.0 / scene.watchers as f64;
    let (p50_ms, p99_ms) = (latencies.micros(0.5) / 1e3, latencies.micros(0.99) / 1e3);
    Ok(Round { p99_ms, p50_ms, lost, connection_kib })
}

async fn revision(client: &mut Client) -> Result<String, Failure> {
    #[derive(serde::Deserialize)]
    struct List {
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
    }
    let (_, body) = client.send(Method::GET, &format!("{COLLECTION}?limit=1"), "").await?;
    Ok(serde_json::from_slice::<List>(&body)?.metadata.resource_version)
}

/// A watch whose response head has arrived, and the task of its connection.
struct WatchStream {
    body: hyper::body::Incoming,
    _connection: TaskSet,
}

async fn open(endpoint: &Endpoint, path: &str) -> Result<WatchStream, Failure> {
    let (mut sender, connection) = endpoint.open().await?;
    let tasks = TaskSet::new();
    tasks.spawn_until_cancelled("watch-connection", async move {
        // The body reports the end of the connection.
        let _ = connection.await;
    });
    sender.ready().await?;
    let answer = sender.send_request(endpoint.get(path)?).await?;
    if !answer.status().is_success() {
        return Err(format!("watch: {}", answer.status()).into());
    }
    Ok(WatchStream { body: answer.into_body(), _connection: tasks })
}

/// Sends the number of the object of each event, and the time of its arrival.
async fn read(mut stream: WatchStream, seen: mpsc::UnboundedSender<(usize, Instant)>) {
    let mut text = Vec::new();
    while let Some(Ok(frame)) = stream.body.frame().await {
        let Some(data) = frame.data_ref() else { continue };
        text.extend_from_slice(data);
        let now = Instant::now();
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            if let Some(name) = name_of(&line) {
                // Fails only after the round, when the receiver is gone.
                let _ = seen.send((name, now));
            }
        }
    }
}

/// Returns the number in the name `watched-N` of an event's object.
fn name_of(line: &[u8]) -> Option<usize> {
    const MARK: &str = "\"name\":\"watched-";
    let text = std::str::from_utf8(line).ok()?;
    let rest = &text[text.find(MARK)? + MARK.len()..];
    rest[..rest.find('"')?].parse().ok()
}

/// Creates objects at a steady pace; returns the time of each request.
async fn create(writer: &mut Client, per_second: u32, count: u32) -> Result<Vec<Instant>, Failure> {
    let mut pace = tokio::time::interval(Duration::from_secs(1) / per_second);
    let mut sent = Vec::new();
    for at in 0..count {
        pace.tick().await;
        sent.push(Instant::now());
        writer.send_ok(Method::POST, COLLECTION, config_map(&format!("watched-{at}"), 'w')).await?;
    }
    Ok(sent)
}
