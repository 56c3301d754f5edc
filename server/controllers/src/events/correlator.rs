//! Decides which events repeat an earlier one, are combined, or are dropped (`EventCorrelator`). Pure: times are arguments.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

/// Maximum number of sources; the one whose last event is the oldest is removed (`maxLruCacheEntries`).
const MAX_SOURCES: usize = 4_096;
/// Number of events with the same reason and different messages that are combined into one (`defaultAggregateMaxEvents`).
const MAX_SIMILAR: usize = 10;
/// Interval without such events after which counting starts again (`defaultAggregateIntervalInSeconds`).
const AGGREGATE_INTERVAL: SignedDuration = SignedDuration::from_secs(600);
/// Number of events of one source that are written at once (`defaultSpamBurst`).
const SPAM_BURST: f64 = 25.0;
/// Rate at which a source may write events after a burst, one in five minutes (`defaultSpamQPS`).
const SPAM_QPS: f64 = 1.0 / 300.0;

/// Component, event type and object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EventSource {
    pub(super) component: &'static str,
    /// `Normal` or `Warning`.
    pub(super) kind: &'static str,
    pub(super) object: String,
}

/// Fields of an event to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CorrelatedEvent {
    /// Time of the first occurrence in nanoseconds, which makes the event's name unique.
    pub(super) id: i128,
    /// Number of occurrences.
    pub(super) count: u32,
    pub(super) first: Timestamp,
    pub(super) message: String,
}

/// Correlator of the events of all sources.
#[derive(Default)]
pub(super) struct Correlator(HashMap<EventSource, SourceState>);

struct SourceState {
    /// Number of events that may be written now.
    tokens: f64,
    last: Timestamp,
    reasons: HashMap<&'static str, ReasonEvents>,
}

/// Events with the same reason.
struct ReasonEvents {
    /// Counts by message, fewer than [`MAX_SIMILAR`].
    by_message: HashMap<String, EventCount>,
    combined: Option<EventCount>,
    last: Timestamp,
}

#[derive(Clone, Copy)]
struct EventCount {
    count: u32,
    first: Timestamp,
}

impl Correlator {
    /// Counts an event. Returns `None` if the source has too many events.
    pub(super) fn correlate(
        &mut self,
        source: &EventSource,
        reason: &'static str,
        message: &str,
        now: Timestamp,
    ) -> Option<CorrelatedEvent> {
        if self.0.len() >= MAX_SOURCES && !self.0.contains_key(source) {
            let oldest = self.0.iter().min_by_key(|(_, state)| state.last).map(|(source, _)| source.clone());
            oldest.map(|oldest| self.0.remove(&oldest));
        }
        let state = self.0.entry(source.clone()).or_insert_with(|| SourceState {
            tokens: SPAM_BURST,
            last: now,
            reasons: HashMap::new(),
        });
        let passed = now.duration_since(state.last).as_secs_f64().max(0.0);
        state.tokens = passed.mul_add(SPAM_QPS, state.tokens).min(SPAM_BURST);
        state.last = now;
        let new_events = || ReasonEvents { by_message: HashMap::new(), combined: None, last: now };
        let correlated = state.reasons.entry(reason).or_insert_with(new_events).count(message, now);
        // Dropped events are also counted.
        if state.tokens < 1.0 {
            return None;
        }
        state.tokens -= 1.0;
        Some(correlated)
    }
}

impl ReasonEvents {
    fn count(&mut self, message: &str, now: Timestamp) -> CorrelatedEvent {
        if now.duration_since(self.last) > AGGREGATE_INTERVAL {
            self.by_message.retain(|other, _| other == message);
        }
        self.last = now;
        if let Some(counted) = self.by_message.get_mut(message) {
            return counted.increment(message.to_owned());
        }
        if self.by_message.len() + 1 < MAX_SIMILAR {
            let counted =
                self.by_message.entry(message.to_owned()).or_insert(EventCount { count: 0, first: now });
            return counted.increment(message.to_owned());
        }
        let combined = self.combined.get_or_insert(EventCount { count: 0, first: now });
        combined.increment(format!("(combined from similar events): {message}"))
    }
}

impl EventCount {
    fn increment(&mut self, message: String) -> CorrelatedEvent {
        self.count = self.count.saturating_add(1);
        CorrelatedEvent { id: self.first.as_nanosecond(), count: self.count, first: self.first, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    fn source(name: usize) -> EventSource {
        EventSource { component: "c", kind: "Warning", object: name.to_string() }
    }

    #[test]
    fn a_repeated_event_is_counted_and_one_repeated_too_often_is_not_written() {
        let mut correlator = Correlator::default();
        let first = correlator.correlate(&source(1), "R", "m", at(0)).unwrap();
        assert_eq!((first.count, first.id), (1, at(0).as_nanosecond()));
        for count in 2..=25 {
            let again = correlator.correlate(&source(1), "R", "m", at(1)).unwrap();
            assert_eq!((again.count, again.id), (count, first.id));
        }
        assert_eq!(correlator.correlate(&source(1), "R", "m", at(2)), None);
        assert_eq!(correlator.correlate(&source(2), "R", "m", at(2)).unwrap().count, 1, "another object");
        assert_eq!(correlator.correlate(&source(1), "R", "m", at(310)).unwrap().count, 27);
    }

    #[test]
    fn events_that_differ_by_message_become_one() {
        let mut correlator = Correlator::default();
        let mut record = |message: usize, seconds| {
            correlator.correlate(&source(1), "R", &message.to_string(), at(seconds)).unwrap()
        };
        assert!((0..9).all(|message| record(message, 0).count == 1));
        let combined = record(9, 1);
        assert_eq!((combined.message.as_str(), combined.count), ("(combined from similar events): 9", 1));
        let again = record(10, 2);
        assert_eq!((again.message.as_str(), again.count), ("(combined from similar events): 10", 2));
        assert_eq!((again.id, record(3, 3).count), (combined.id, 2));
        assert_eq!(record(11, 604).message, "11", "counting starts again after ten minutes without events");
    }

    #[test]
    fn a_bounded_number_of_objects_is_remembered() {
        let mut correlator = Correlator::default();
        for name in 0..=MAX_SOURCES {
            let seconds = i64::try_from(name).unwrap();
            assert!(correlator.correlate(&source(name), "R", "m", at(seconds)).is_some());
        }
        assert_eq!(correlator.0.len(), MAX_SOURCES);
        assert!(!correlator.0.contains_key(&source(0)), "the oldest source is removed");
    }
}
