//! Where the time of a request went: noted of every request that is recorded, written only of slow ones (upstream's
//! `writeLatencyToAnnotation` and `LatencyTrackers`).

use std::time::Duration;

use portico_gostd::time::format_duration;

/// Requests that took longer say where their time went.
const SLOW: Duration = Duration::from_millis(500);
/// What the keys begin with.
const PREFIX: &str = "apiserver.latency.k8s.io/";
const TOTAL: &str = "apiserver.latency.k8s.io/total";

/// A part of a request's time that is measured by who receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Until it was known who asks.
    Authentication,
    /// Until it was known who they want to be.
    Impersonation,
    /// In a queue of priority and fairness.
    QueueWait,
    /// Until it was known whether they may.
    Authorization,
    /// Until the client, or the network, had taken what was answered.
    ResponseWrite,
}

impl Latency {
    fn key(self) -> &'static str {
        match self {
            Self::Authentication => "apiserver.latency.k8s.io/authentication",
            Self::Impersonation => "apiserver.latency.k8s.io/impersonation",
            Self::QueueWait => "apiserver.latency.k8s.io/apf-queue-wait",
            Self::Authorization => "apiserver.latency.k8s.io/authorization",
            Self::ResponseWrite => "apiserver.latency.k8s.io/response-write",
        }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Latencies {
    measured: Vec<(Latency, Duration)>,
    /// By who answers the request elsewhere.
    reported: Vec<(String, String)>,
}

impl Latencies {
    /// Whether an annotation is one of these.
    pub(crate) fn has(key: &str) -> bool {
        key.starts_with(PREFIX)
    }

    pub(crate) fn measured(&mut self, part: Latency, took: Duration) {
        self.measured.push((part, took));
    }

    pub(crate) fn reported(&mut self, key: String, value: String) {
        self.reported.push((key, value));
    }

    /// What the event of a request says that took so long in all: nothing of a quick one, nor of parts that took no time.
    pub(crate) fn annotations(self, total: Duration) -> Vec<(String, String)> {
        if total <= SLOW {
            return Vec::new();
        }
        let measured = self.measured.into_iter().filter(|(_, took)| !took.is_zero());
        let mut annotations = self.reported;
        annotations.extend(measured.map(|(part, took)| (part.key().to_owned(), format_duration(took))));
        annotations.push((TOTAL.to_owned(), format_duration(total)));
        annotations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies() -> Latencies {
        let mut latencies = Latencies::default();
        latencies.measured(Latency::Authentication, Duration::from_micros(20));
        latencies.measured(Latency::QueueWait, Duration::ZERO);
        latencies.reported("apiserver.latency.k8s.io/etcd".to_owned(), "3ms".to_owned());
        latencies
    }

    #[test]
    fn only_a_slow_request_says_where_its_time_went() {
        assert_eq!(latencies().annotations(SLOW), []);
        let annotations = latencies().annotations(Duration::from_millis(501));
        let expected = [("etcd", "3ms"), ("authentication", "20µs"), ("total", "501ms")];
        assert_eq!(annotations, expected.map(|(key, value)| (format!("{PREFIX}{key}"), value.to_owned())));
    }
}
