//! Trace of one request, stage by stage, for callers that request a trace. Other requests are not traced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;

/// Maximum number of stages and of endpoints in one trace; further ones are omitted.
const MAX_ENTRIES: usize = 128;
/// Stage that ends when the response begins.
const RESPONSE: &str = "response";
/// Stage that ends when the response body ends.
const BODY: &str = "body";

/// Trace of one request.
#[derive(Debug)]
pub struct RequestTrace {
    begin: Instant,
    should_send: bool,
    stopped: AtomicBool,
    contents: Mutex<TraceContents>,
}

/// Contents of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceContents {
    /// Stages, in the order in which they ended.
    pub stages: Vec<TraceStage>,
    /// Addresses of the backend, with the reason why each was or was not selected for the request.
    pub endpoints: Vec<TraceEndpoint>,
}

/// Stage of a request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceStage {
    /// Name of the stage.
    pub stage: &'static str,
    /// True if the request passed the stage.
    pub ok: bool,
    /// Result, or the reason of the failure.
    pub message: String,
    /// End of the stage, in milliseconds after the arrival of the request.
    pub at_ms: f64,
    /// Duration of the stage, in milliseconds.
    pub took_ms: f64,
}

/// Address of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceEndpoint {
    /// Address as `host:port`.
    pub endpoint: String,
    /// State in one or two words.
    pub state: &'static str,
    /// Reason of the state.
    pub message: String,
}

impl RequestTrace {
    /// Returns the trace of a request that arrived at `begin`. Unless `should_send` is set, the request is not forwarded
    /// to its handler.
    pub fn new(begin: Instant, should_send: bool) -> Self {
        Self { begin, should_send, stopped: AtomicBool::new(false), contents: Mutex::default() }
    }

    /// True if the request is forwarded to its handler.
    pub fn should_send(&self) -> bool {
        self.should_send
    }

    /// Ends the trace before the request is forwarded.
    pub fn stop(&self, message: &str) {
        self.stopped.store(true, Ordering::Relaxed);
        self.record_duration("request", Duration::ZERO, message);
    }

    /// True if the trace ended before the request was forwarded.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// True if the request was forwarded to its handler: no earlier stage has refused it or failed.
    pub fn is_sent(&self) -> bool {
        let has_come = |last: &TraceStage| last.ok || matches!(last.stage, RESPONSE | BODY);
        self.should_send && !self.is_stopped() && self.contents.lock().stages.last().is_none_or(has_come)
    }

    /// Records a successful stage that began at `since` and ends now.
    pub fn record_passed(&self, stage: &'static str, since: Instant, message: impl Into<String>) {
        self.push_stage(stage, true, since.elapsed(), message.into());
    }

    /// Records a successful stage with its duration.
    pub fn record_duration(&self, stage: &'static str, duration: Duration, message: impl Into<String>) {
        self.push_stage(stage, true, duration, message.into());
    }

    /// Records a failed stage that began at `since` and ends now.
    pub fn record_failed(&self, stage: &'static str, since: Instant, message: impl Into<String>) {
        self.push_stage(stage, false, since.elapsed(), message.into());
    }

    /// Records that the request was refused, unless the last stage has already failed.
    pub fn record_refused(&self, stage: &'static str, message: impl Into<String>) {
        if self.contents.lock().stages.last().is_none_or(|last| last.ok) {
            self.push_stage(stage, false, Duration::ZERO, message.into());
        }
    }

    /// Records the beginning of the response, unless it was recorded already or the last stage has failed.
    pub fn record_response(&self, ok: bool, message: impl Into<String>) {
        let last = self
            .contents
            .lock()
            .stages
            .last()
            .map_or((false, 0.0), |last| (!last.ok || last.stage == RESPONSE, last.at_ms));
        let (false, at_ms) = last else { return };
        let since = Duration::try_from_secs_f64(at_ms / 1000.0).unwrap_or_default();
        self.push_stage(RESPONSE, ok, self.begin.elapsed().saturating_sub(since), message.into());
    }

    /// Sets the addresses of the backend with their current states.
    pub fn set_endpoints(&self, mut endpoints: Vec<TraceEndpoint>) {
        endpoints.truncate(MAX_ENTRIES);
        self.contents.lock().endpoints = endpoints;
    }

    /// Returns the current contents.
    pub fn contents(&self) -> TraceContents {
        self.contents.lock().clone()
    }

    fn push_stage(&self, stage: &'static str, ok: bool, duration: Duration, message: String) {
        let at_ms = milliseconds(self.begin.elapsed());
        let stages = &mut self.contents.lock().stages;
        if stages.len() < MAX_ENTRIES {
            stages.push(TraceStage { stage, ok, message, at_ms, took_ms: milliseconds(duration) });
        }
    }
}

/// Converts a duration to milliseconds, rounded to microseconds.
pub fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_recorded_once_and_a_trace_is_bounded() {
        let trace = RequestTrace::new(Instant::now(), false);
        trace.record_failed("dial", Instant::now(), "refused");
        trace.record_refused("backend", "not reached");
        assert_eq!(trace.contents().stages.len(), 1);
        for _ in 0..2 * MAX_ENTRIES {
            trace.record_duration("tls", Duration::from_micros(1500), "well");
        }
        let contents = trace.contents();
        assert_eq!((contents.stages.len(), contents.stages[1].took_ms), (MAX_ENTRIES, 1.5));
        assert!(!trace.is_stopped() && !trace.is_sent());
        trace.stop("not sent");
        assert!(trace.is_stopped());
    }

    #[test]
    fn a_response_is_recorded_once_and_not_after_a_failure() {
        let walk = RequestTrace::new(Instant::now(), true);
        walk.record_response(false, "404 Not Found");
        assert!(walk.is_sent());
        walk.record_response(true, "200 OK");
        assert_eq!(walk.contents().stages.len(), 1);
        walk.record_failed("authorization", Instant::now(), "no rule");
        assert!(!walk.is_sent());
        walk.record_response(false, "403 Forbidden");
        assert_eq!(walk.contents().stages.len(), 2);
    }
}
