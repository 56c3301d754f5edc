//! Trace of one request, stage by stage, for callers that request a trace. Other requests are not traced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;

/// Maximum number of stages and of endpoints in one trace; further ones are omitted.
const MAX_NOTED: usize = 128;
/// Stage that ends when the response begins.
const RESPONSE: &str = "response";
/// Stage that ends when the response body ends.
const BODY: &str = "body";

/// Trace of one request.
#[derive(Debug)]
pub struct Walk {
    begin: Instant,
    sends: bool,
    stopped: AtomicBool,
    noted: Mutex<Noted>,
}

/// Contents of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Noted {
    /// Stages, in the order in which they ended.
    pub stages: Vec<Stage>,
    /// Addresses of the backend, with the reason why each was or was not selected for the request.
    pub endpoints: Vec<Endpoint>,
}

/// Stage of a request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
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
pub struct Endpoint {
    /// Address as `host:port`.
    pub endpoint: String,
    /// State in one or two words.
    pub state: &'static str,
    /// Reason of the state.
    pub message: String,
}

impl Walk {
    /// Returns the trace of a request that arrived at `begin`. Unless `should_send` is set, the request is not forwarded
    /// to its handler.
    pub fn new(begin: Instant, sends: bool) -> Self {
        Self { begin, sends, stopped: AtomicBool::new(false), noted: Mutex::default() }
    }

    /// True if the request is forwarded to its handler.
    pub fn sends(&self) -> bool {
        self.sends
    }

    /// Ends the trace before the request is forwarded.
    pub fn stop(&self, message: &str) {
        self.stopped.store(true, Ordering::Relaxed);
        self.took("request", Duration::ZERO, message);
    }

    /// True if the trace ended before the request was forwarded.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// True if the request was forwarded to its handler: no earlier stage has refused it or failed.
    pub fn is_sent(&self) -> bool {
        let has_come = |last: &Stage| last.ok || matches!(last.stage, RESPONSE | BODY);
        self.sends && !self.is_stopped() && self.noted.lock().stages.last().is_none_or(has_come)
    }

    /// Records a successful stage that began at `since` and ends now.
    pub fn passed(&self, stage: &'static str, since: Instant, message: impl Into<String>) {
        self.note(stage, true, since.elapsed(), message.into());
    }

    /// Records a successful stage with its duration.
    pub fn took(&self, stage: &'static str, took: Duration, message: impl Into<String>) {
        self.note(stage, true, took, message.into());
    }

    /// Records a failed stage that began at `since` and ends now.
    pub fn failed(&self, stage: &'static str, since: Instant, message: impl Into<String>) {
        self.note(stage, false, since.elapsed(), message.into());
    }

    /// Records that the request was refused, unless the last stage has already failed.
    pub fn refused(&self, stage: &'static str, message: impl Into<String>) {
        if self.noted.lock().stages.last().is_none_or(|last| last.ok) {
            self.note(stage, false, Duration::ZERO, message.into());
        }
    }

    /// Records the beginning of the response, unless it was recorded already or the last stage has failed.
    pub fn answered(&self, ok: bool, message: impl Into<String>) {
        let last = self
            .noted
            .lock()
            .stages
            .last()
            .map_or((false, 0.0), |last| (!last.ok || last.stage == RESPONSE, last.at_ms));
        let (false, at_ms) = last else { return };
        let since = Duration::try_from_secs_f64(at_ms / 1000.0).unwrap_or_default();
        self.note(RESPONSE, ok, self.begin.elapsed().saturating_sub(since), message.into());
    }

    /// Sets the addresses of the backend with their current states.
    pub fn endpoints(&self, mut endpoints: Vec<Endpoint>) {
        endpoints.truncate(MAX_NOTED);
        self.noted.lock().endpoints = endpoints;
    }

    /// Returns the current contents.
    pub fn noted(&self) -> Noted {
        self.noted.lock().clone()
    }

    fn note(&self, stage: &'static str, ok: bool, took: Duration, message: String) {
        let at_ms = milliseconds(self.begin.elapsed());
        let stages = &mut self.noted.lock().stages;
        if stages.len() < MAX_NOTED {
            stages.push(Stage { stage, ok, message, at_ms, took_ms: milliseconds(took) });
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
    fn a_refusal_is_noted_once_and_a_walk_is_bounded() {
        let walk = Walk::new(Instant::now(), false);
        walk.failed("dial", Instant::now(), "refused");
        walk.refused("backend", "not reached");
        assert_eq!(walk.noted().stages.len(), 1);
        for _ in 0..2 * MAX_NOTED {
            walk.took("tls", Duration::from_micros(1500), "well");
        }
        let noted = walk.noted();
        assert_eq!((noted.stages.len(), noted.stages[1].took_ms), (MAX_NOTED, 1.5));
        assert!(!walk.is_stopped() && !walk.is_sent());
        walk.stop("not sent");
        assert!(walk.is_stopped());
    }

    #[test]
    fn an_answer_is_noted_once_and_not_behind_a_failure() {
        let walk = Walk::new(Instant::now(), true);
        walk.answered(false, "404 Not Found");
        assert!(walk.is_sent());
        walk.answered(true, "200 OK");
        assert_eq!(walk.noted().stages.len(), 1);
        walk.failed("authorization", Instant::now(), "no rule");
        assert!(!walk.is_sent());
        walk.answered(false, "403 Forbidden");
        assert_eq!(walk.noted().stages.len(), 2);
    }
}
