//! Durations of the parts of a request. They are measured for every recorded request and written only for slow ones (upstream's
//! `writeLatencyToAnnotation` and `LatencyTrackers`).

use std::time::Duration;

use portico_gostd::time::format_duration;

/// Duration above which the event of a request contains its latencies.
const SLOW_REQUEST: Duration = Duration::from_millis(500);
/// Prefix of annotations with latencies.
const KEY_PREFIX: &str = "apiserver.latency.k8s.io/";
const TOTAL_KEY: &str = "apiserver.latency.k8s.io/total";

/// Part of a request that the component which receives the request measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Authentication of the caller.
    Authentication,
    /// Check of the impersonation headers.
    Impersonation,
    /// Wait in a queue of priority and fairness.
    QueueWait,
    /// Authorization of the request.
    Authorization,
    /// Writing the response to the client.
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

/// Latencies of one request.
#[derive(Default)]
pub(crate) struct Latencies {
    measured: Vec<(Latency, Duration)>,
    /// Annotations reported by another process that handled a part of the request.
    reported: Vec<(String, String)>,
}

impl Latencies {
    /// True if an annotation is a latency.
    pub(crate) fn is_latency(key: &str) -> bool {
        key.starts_with(KEY_PREFIX)
    }

    pub(crate) fn add_measured(&mut self, part: Latency, duration: Duration) {
        self.measured.push((part, duration));
    }

    pub(crate) fn add_reported(&mut self, key: String, value: String) {
        self.reported.push((key, value));
    }

    /// Returns the annotations of a request with this total duration: empty if it is not slow. Parts without
    /// duration are omitted.
    pub(crate) fn annotations(self, total: Duration) -> Vec<(String, String)> {
        if total <= SLOW_REQUEST {
            return Vec::new();
        }
        let measured = self.measured.into_iter().filter(|(_, duration)| !duration.is_zero());
        let mut annotations = self.reported;
        annotations.extend(measured.map(|(part, took)| (part.key().to_owned(), format_duration(took))));
        annotations.push((TOTAL_KEY.to_owned(), format_duration(total)));
        annotations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies() -> Latencies {
        let mut latencies = Latencies::default();
        latencies.add_measured(Latency::Authentication, Duration::from_micros(20));
        latencies.add_measured(Latency::QueueWait, Duration::ZERO);
        latencies.add_reported("apiserver.latency.k8s.io/etcd".to_owned(), "3ms".to_owned());
        latencies
    }

    #[test]
    fn only_slow_requests_are_annotated_with_latencies() {
        assert_eq!(latencies().annotations(SLOW_REQUEST), []);
        let annotations = latencies().annotations(Duration::from_millis(501));
        let expected = [("etcd", "3ms"), ("authentication", "20µs"), ("total", "501ms")];
        assert_eq!(
            annotations,
            expected.map(|(key, value)| (format!("{KEY_PREFIX}{key}"), value.to_owned()))
        );
    }
}
