//! `/console/data/backends`: what this facade's own requests have shown of backends: their addresses, and which of them get no requests.
//!
//! With `?watch=true` a line whenever something is another, looked at once a second; `?name=` is for one APIService.

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
use portico_proxy::{EjectionState, Stage, TargetState, Upstream};
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::body::Body;
use crate::console_paths::is_watch;
use crate::endpoints::json_body::{JSON, JSON_LINES};
use crate::endpoints::state::Shared;
use crate::in_force::{Current, InForce};
use crate::request::{RequestView, Response};
use crate::respond;

/// How often it is looked for news.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Backends {
    backends: Vec<Backend>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Backend {
    /// The APIService's name.
    name: String,
    /// Requests under way.
    in_flight: usize,
    /// None before the first request.
    targets: Vec<Target>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    target: String,
    /// Whether only probes are sent there.
    circuit_open: bool,
    failures: u32,
    /// The stage at which the last dial failed; empty when it did not.
    failed: &'static str,
    message: String,
    /// RFC 3339; empty before the first dial.
    since: String,
    /// Its share of requests; nothing where all have the same.
    weight: Option<u32>,
    /// Nothing where no policy asks for ejections.
    ejection: Option<Ejection>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ejection {
    out: bool,
    /// Requests in a row that went badly.
    failures: u32,
    /// Since when they go badly, or when it came back; empty where none ever went badly.
    since: String,
    /// When one request may try it again; empty while it is in.
    tried_at: String,
}

/// The backends of the routes in force.
pub async fn backends(State(endpoints): Shared, request: Request) -> Response {
    let Some(console) = &endpoints.console else { return respond::not_found(&request) };
    if request.method() != Method::GET {
        return respond::status(&request, &Status::no_method());
    }
    let name = first_value(request.query(), "name").map(Cow::into_owned);
    if !is_watch(request.query()) {
        return match written(request.in_force(), name.as_deref()) {
            Ok(json) => respond::whole(StatusCode::OK, JSON, json),
            Err(error) => respond::internal(&request, &error.to_string()),
        };
    }
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (current, stopping) = (console.in_force.clone(), console.stopping.clone());
    let follower = Follower { current, stopping, name, ticks, last: Vec::new() };
    let body = StreamBody::new(stream::unfold(follower, |mut follower| async {
        let line = follower.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(line)), follower))
    }));
    let mut response = respond::whole(StatusCode::OK, JSON_LINES, "");
    *response.body_mut() = Body::streamed(body);
    response
}

/// Somebody who goes on looking.
struct Follower {
    current: Current,
    stopping: Signal,
    name: Option<String>,
    ticks: Interval,
    last: Vec<u8>,
}

impl Follower {
    /// The next state; nothing at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                _ = self.ticks.tick() => {}
                () = self.stopping.signaled() => return None,
            }
            // What cannot be written ends it.
            let state = written(&self.current.load(), self.name.as_deref()).ok()?;
            if state != self.last {
                let line = [&*state, b"\n"].concat().into();
                self.last = state;
                return Some(line);
            }
        }
    }
}

fn written(in_force: &InForce, name: Option<&str>) -> serde_json::Result<Vec<u8>> {
    let upstreams = in_force.routes.routes().filter(|upstream| {
        let route = upstream.route();
        route.backend.is_some() && name.is_none_or(|name| route.name == name)
    });
    let mut backends: Vec<Backend> = upstreams.map(|upstream| backend(upstream)).collect();
    backends.sort_by(|a, b| a.name.cmp(&b.name));
    serde_json::to_vec(&Backends { backends })
}

fn backend(upstream: &Upstream) -> Backend {
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
        out: state.is_out,
        failures: state.failures,
        since: time(state.since_ms),
        tried_at: time(state.tried_at_ms),
    }
}

/// RFC 3339; empty where there is none.
fn time(ms: Option<u64>) -> String {
    let time = ms.and_then(|ms| Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
    time.map(|time| time.to_string()).unwrap_or_default()
}
