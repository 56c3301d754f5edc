//! The load client: persistent connections, each with one request in flight, for a fixed time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::{Either, select};
use http::{Request, StatusCode};
use http_body_util::Full;
use portico_kit::tasks::TaskSet;
use tokio::sync::mpsc;

use crate::Failure;
use crate::https::{Endpoint, Sender, drain};
use crate::statistics::Latencies;

/// Warm-up before the measurement: connections, pools and caches are established.
const WARM_UP: Duration = Duration::from_millis(500);
/// Time after the load for last responses: kube-apiserver needs up to a minute for hostile bodies.
const GRACE: Duration = Duration::from_secs(120);

/// Results of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    /// Number of 200 responses per second.
    pub(crate) per_second: f64,
    /// Latencies of these responses.
    pub(crate) latencies: Latencies,
    /// Number of responses with other codes.
    pub(crate) errors: usize,
    /// Number of all responses, including the warm-up.
    answers: usize,
}

impl Load {
    /// Returns the number of responses, including the warm-up.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
    pub(crate) fn response_count(&self) -> f64 {
        self.answers as f64
    }

    /// Returns the median latency in microseconds.
    pub(crate) fn p50(&self) -> f64 {
        self.latencies.micros(0.5)
    }

    /// Returns the 99th percentile of the latency in microseconds.
    pub(crate) fn p99(&self) -> f64 {
        self.latencies.micros(0.99)
    }

    /// Fails unless every response was 200 or 201.
    pub(crate) fn require_success(self, what: &str) -> Result<Self, Failure> {
        match self.errors {
            0 if self.latencies.count() > 0 => Ok(self),
            errors => Err(format!("{what}: {errors} responses had a status other than 200").into()),
        }
    }
}

#[derive(Default)]
struct Connection {
    nanos: Vec<u64>,
    errors: usize,
    answers: usize,
}

/// GETs a path over this many connections for this long.
pub(crate) async fn get(
    endpoint: &Endpoint,
    path: &str,
    connections: usize,
    time: Duration,
) -> Result<Load, Failure> {
    let request = endpoint.get(path)?;
    drive(endpoint, connections, time, move |_, _| Ok(request.clone())).await
}

/// Function that creates the next request of a connection, from the number of the connection and of its earlier requests.
pub(crate) trait NextRequest:
    Fn(usize, usize) -> Result<Request<Full<Bytes>>, Failure> + Send + Sync + 'static
{
}
impl<F: Fn(usize, usize) -> Result<Request<Full<Bytes>>, Failure> + Send + Sync + 'static> NextRequest for F {}

/// Sends the requests that `next` creates over this many connections for this long.
pub(crate) async fn drive(
    endpoint: &Endpoint,
    connections: usize,
    time: Duration,
    next: impl NextRequest,
) -> Result<Load, Failure> {
    let next = Arc::new(next);
    let tasks = TaskSet::new();
    let (send, mut receive) = mpsc::channel(connections);
    let begin = Instant::now() + WARM_UP;
    let end = begin + time;
    for at in 0..connections {
        let (endpoint, next, send) = (endpoint.clone(), next.clone(), send.clone());
        tasks.spawn_until_cancelled("load", async move {
            let outcome = connection(&endpoint, at, &*next, begin, end).await;
            // The receiver is dropped if another connection failed.
            let _ = send.send(outcome).await;
        });
    }
    drop(send);
    let mut all = Connection::default();
    let collect = async {
        while let Some(one) = receive.recv().await {
            let one = one?;
            all.nanos.extend(one.nanos);
            all.errors += one.errors;
            all.answers += one.answers;
        }
        Ok::<_, Failure>(())
    };
    let outcome = tokio::time::timeout(WARM_UP + time + GRACE, collect).await;
    tasks.cancel();
    outcome.map_err(|_| "the load did not end")??;
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
    let per_second = all.nanos.len() as f64 / time.as_secs_f64();
    Ok(Load { per_second, latencies: Latencies::new(all.nanos), errors: all.errors, answers: all.answers })
}

async fn connection(
    endpoint: &Endpoint,
    at: usize,
    next: &impl NextRequest,
    begin: Instant,
    end: Instant,
) -> Result<Connection, Failure> {
    let (sender, connection) = endpoint.open().await?;
    // One task polls both halves: wake-ups between tasks would count as latency.
    match select(Box::pin(requests(sender, at, next, begin, end)), connection).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right((Ok(()), requests)) => requests.await,
        Either::Right((Err(error), _)) => Err(error.into()),
    }
}

async fn requests(
    mut sender: Sender,
    at: usize,
    next: &impl NextRequest,
    begin: Instant,
    end: Instant,
) -> Result<Connection, Failure> {
    let mut seen = Connection::default();
    let mut sent = Instant::now();
    while sent < end {
        sender.ready().await?;
        let answer = sender.send_request(next(at, seen.answers)?).await?;
        let ok = matches!(answer.status(), StatusCode::OK | StatusCode::CREATED);
        drain(answer.into_body()).await?;
        let now = Instant::now();
        seen.answers += 1;
        if !ok {
            seen.errors += 1;
        } else if sent >= begin && now <= end {
            seen.nanos.push(u64::try_from((now - sent).as_nanos()).unwrap_or(u64::MAX));
        }
        sent = now;
    }
    Ok(seen)
}
