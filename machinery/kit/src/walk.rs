//! What happens to one request, stage by stage, for whoever asked to see it. Requests that nobody asked about have none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;

/// Stages and endpoints that one walk keeps; what comes after them is not noted.
const MAX_NOTED: usize = 128;
/// The stage at whose end an answer begins.
const RESPONSE: &str = "response";
/// The stage at whose end it ends.
const BODY: &str = "body";

/// See the module.
#[derive(Debug)]
pub struct Walk {
    begin: Instant,
    sends: bool,
    stopped: AtomicBool,
    noted: Mutex<Noted>,
}

/// What was noted so far.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Noted {
    /// In the order in which they ended.
    pub stages: Vec<Stage>,
    /// Of a backend: each of its addresses, and why it got the request, or did not.
    pub endpoints: Vec<Endpoint>,
}

/// One stage.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// Its name.
    pub stage: &'static str,
    /// Whether the request could go on.
    pub ok: bool,
    /// What was found, or what is wrong.
    pub message: String,
    /// When it ended, in milliseconds after the request had arrived.
    pub at_ms: f64,
    /// How long it took, in milliseconds.
    pub took_ms: f64,
}

/// One address of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// `host:port`
    pub endpoint: String,
    /// In a word or two.
    pub state: &'static str,
    /// Why.
    pub message: String,
}

impl Walk {
    /// Of a request that arrived then. Unless it `sends`, whoever would answer it is not asked.
    pub fn new(begin: Instant, sends: bool) -> Self {
        Self { begin, sends, stopped: AtomicBool::new(false), noted: Mutex::default() }
    }

    /// Whether the request is sent to whoever answers it.
    pub fn sends(&self) -> bool {
        self.sends
    }

    /// The walk is over here: nothing was sent.
    pub fn stop(&self, message: &str) {
        self.stopped.store(true, Ordering::Relaxed);
        self.took("request", Duration::ZERO, message);
    }

    /// Whether nothing was sent.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether it was sent to whoever answers it: nothing before them has refused it, or failed.
    pub fn is_sent(&self) -> bool {
        let has_come = |last: &Stage| last.ok || matches!(last.stage, RESPONSE | BODY);
        self.sends && !self.is_stopped() && self.noted.lock().stages.last().is_none_or(has_come)
    }

    /// A stage that began then has ended well.
    pub fn passed(&self, stage: &'static str, since: Instant, message: impl Into<String>) {
        self.note(stage, true, since.elapsed(), message.into());
    }

    /// A stage that took so long has ended well.
    pub fn took(&self, stage: &'static str, took: Duration, message: impl Into<String>) {
        self.note(stage, true, took, message.into());
    }

    /// A stage that began then has failed.
    pub fn failed(&self, stage: &'static str, since: Instant, message: impl Into<String>) {
        self.note(stage, false, since.elapsed(), message.into());
    }

    /// The request goes no further, for a reason that a stage may have named already.
    pub fn refused(&self, stage: &'static str, message: impl Into<String>) {
        if self.noted.lock().stages.last().is_none_or(|last| last.ok) {
            self.note(stage, false, Duration::ZERO, message.into());
        }
    }

    /// The answer has begun, unless that was noted already, or a stage has failed before.
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

    /// The addresses of the backend as they stand.
    pub fn endpoints(&self, mut endpoints: Vec<Endpoint>) {
        endpoints.truncate(MAX_NOTED);
        self.noted.lock().endpoints = endpoints;
    }

    /// What was noted so far.
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

/// With microseconds behind the point.
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
