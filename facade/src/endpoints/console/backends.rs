//! `/console/data/backends`: addresses of backends as seen by this facade, with circuits and ejections.
//!
//! With `?watch=true`, a line for each change, polled once a second; `?name=` selects one APIService.

use std::borrow::Cow;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Request, State};
use bytes::Bytes;
use futures::stream;
use http::{Method, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use jiff::Timestamp;
use portico_gostd::url::first_value;
use portico_kit::lifecycle::Signal;
use portico_machinery::Status;
use portico_proxy::{EjectionState, RouteEntry, Stage, TargetState};
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::active_config::{ActiveConfig, ActiveConfigCell};
use crate::body::Body;
use crate::console_paths::is_watch;
use crate::endpoints::json_body::{JSON, JSON_LINES};
use crate::endpoints::state::SharedEndpoints;
use crate::request::{RequestView, Response};
use crate::respond;

/// Interval between checks for changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Backends {
    backends: Vec<Backend>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Backend {
    /// Name of the APIService.
    name: String,
    /// Requests in flight.
    in_flight: usize,
    /// Empty before the first request.
    targets: Vec<Target>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    target: String,
    /// True if the target gets probes only.
    circuit_open: bool,
    failures: u32,
    /// Stage at which the last dial failed; empty after a success.
    failed: &'static str,
    message: String,
    /// RFC 3339; empty before the first dial.
    since: String,
    /// Share of requests; `None` if all targets have the same.
    weight: Option<u32>,
    /// `None` without outlier ejection.
    ejection: Option<Ejection>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ejection {
    out: bool,
    /// Consecutive failed requests.
    failures: u32,
    /// Time of the first of these failures, or of the return; empty without failures.
    since: String,
    /// Time of the next attempt; empty unless ejected.
    tried_at: String,
}

/// Serves the backends of the current routes.
pub async fn backends(State(endpoints): SharedEndpoints, request: Request) -> Response {
    let Some(console) = &endpoints.console else { return respond::not_found(&request) };
    if request.method() != Method::GET {
        return respond::status(&request, &Status::method_not_allowed());
    }
    let name = first_value(request.query(), "name").map(Cow::into_owned);
    if !is_watch(request.query()) {
        return match encode_state(request.active_config(), name.as_deref()) {
            Ok(json) => respond::with_body(StatusCode::OK, JSON, json),
            Err(error) => respond::internal(&request, &error.to_string()),
        };
    }
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (current, stopping) = (console.active_config.clone(), console.stopping.clone());
    let follower = Follower { current, stopping, name, ticks, last: Vec::new() };
    let body = StreamBody::new(stream::unfold(follower, |mut follower| async {
        let line = follower.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(line)), follower))
    }));
    let mut response = respond::with_body(StatusCode::OK, JSON_LINES, "");
    *response.body_mut() = Body::streamed(body);
    response
}

/// State of a client that follows changes.
struct Follower {
    current: ActiveConfigCell,
    stopping: Signal,
    name: Option<String>,
    ticks: Interval,
    last: Vec<u8>,
}

impl Follower {
    /// Waits for the next state. Returns `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                _ = self.ticks.tick() => {}
                () = self.stopping.signaled() => return None,
            }
            // A state that cannot be encoded ends the stream.
            let state = encode_state(&self.current.load(), self.name.as_deref()).ok()?;
            if state != self.last {
                let line = [&*state, b"\n"].concat().into();
                self.last = state;
                return Some(line);
            }
        }
    }
}

fn encode_state(config: &ActiveConfig, name: Option<&str>) -> serde_json::Result<Vec<u8>> {
    let upstreams = config.routes.routes().filter(|upstream| {
        let route = upstream.route();
        route.backend.is_some() && name.is_none_or(|name| route.name == name)
    });
    let mut backends: Vec<Backend> = upstreams.map(|upstream| backend(upstream)).collect();
    backends.sort_by(|a, b| a.name.cmp(&b.name));
    serde_json::to_vec(&Backends { backends })
}

fn backend(upstream: &RouteEntry) -> Backend {
    let targets = upstream.target_states().into_iter().map(target).collect();
    Backend { name: upstream.route().name.clone(), in_flight: upstream.in_flight(), targets }
}

fn target(state: TargetState) -> Target {
    Target {
        target: state.target,
        circuit_open: state.is_open,
        failures: state.failures,
        failed: state.failed.map_or("", Stage::as_str),
        message: state.message,
        since: time(state.since_ms),
        weight: state.weight,
        ejection: state.ejection.map(ejection),
    }
}

fn ejection(state: EjectionState) -> Ejection {
    Ejection {
        out: state.is_ejected,
        failures: state.failures,
        since: time(state.since_ms),
        tried_at: time(state.probe_at_ms),
    }
}

/// Formats a time as RFC 3339; empty without a time.
fn time(ms: Option<u64>) -> String {
    let time = ms.and_then(|ms| Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
    time.map(|time| time.to_string()).unwrap_or_default()
}
