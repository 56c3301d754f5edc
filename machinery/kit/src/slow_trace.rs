//! Log line for slow work, with the durations of its parts (`k8s.io/utils/trace`).
//!
//! Durations are recorded while the work runs, and written only if the total exceeds a threshold. Does not depend on the work.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use pin_project_lite::pin_project;
use portico_gostd::time::format_duration;

/// Steps that the log line of a slow request lists.
///
/// Limit (Logs, traces and files): further steps are omitted.
const MAX_PARTS: usize = 64;

thread_local! {
    /// Parts of the work that this thread is polling.
    static CURRENT: RefCell<Option<Arc<PartRecorder>>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct PartRecorder(Mutex<RecordedParts>);

#[derive(Default)]
struct RecordedParts {
    /// Parts in order, up to the maximum number.
    parts: Vec<FinishedPart>,
    /// Durations of all parts, by name.
    times: Vec<(&'static str, PartTimes)>,
}

/// Durations of all parts with one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartTimes {
    /// Sum of the durations, for parts that run one after another.
    pub sum: Duration,
    /// Longest duration, for parts that run concurrently.
    pub longest: Duration,
}

struct FinishedPart {
    name: &'static str,
    duration: Duration,
    ended_at: Timestamp,
}

pin_project! {
    /// Future returned by [`watch`].
    pub struct WatchFuture<F, D> {
        #[pin]
        future: F,
        name: &'static str,
        threshold: Duration,
        started_at: Instant,
        parts: Arc<PartRecorder>,
        describe: Option<D>,
    }
}

pin_project! {
    /// Future returned by [`part`].
    pub struct PartFuture<F> {
        #[pin]
        future: F,
        name: &'static str,
        started_at: Instant,
    }
}

/// Logs the work if it takes at least `threshold`; `describe` returns its fields, as `key:value,key:value`.
pub fn watch<F: Future, D: FnOnce() -> String>(
    name: &'static str,
    threshold: Duration,
    describe: D,
    future: F,
) -> WatchFuture<F, D> {
    let (started_at, parts) = (Instant::now(), Arc::default());
    WatchFuture { future, name, threshold, started_at, parts, describe: Some(describe) }
}

/// Records the duration of a part of the watched work.
pub fn part<F: Future>(name: &'static str, future: F) -> PartFuture<F> {
    PartFuture { future, name, started_at: Instant::now() }
}

/// Returns the durations of the finished parts of the work that is being polled, by name.
pub fn part_times() -> Vec<(&'static str, PartTimes)> {
    CURRENT.with_borrow(|parts| parts.as_ref().map(|parts| parts.0.lock().times.clone()).unwrap_or_default())
}

impl<F: Future, D: FnOnce() -> String> Future for WatchFuture<F, D> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let current_guard = CurrentGuard { outer: CURRENT.replace(Some(this.parts.clone())) };
        let polled = this.future.poll(cx);
        drop(current_guard);
        let duration = this.started_at.elapsed();
        if polled.is_ready() && duration >= *this.threshold {
            let fields = this.describe.take().map(|describe| describe()).unwrap_or_default();
            let text = trace_text(this.name, &fields, duration, *this.threshold, &this.parts.0.lock().parts);
            tracing::info!(target: "trace", "{text}");
        }
        polled
    }
}

/// Guard that restores the outer work on drop, also after a panic.
struct CurrentGuard {
    outer: Option<Arc<PartRecorder>>,
}

impl Drop for CurrentGuard {
    fn drop(&mut self) {
        CURRENT.set(self.outer.take());
    }
}

impl<F: Future> Future for PartFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let polled = this.future.poll(cx);
        if polled.is_ready() {
            record_part(this.name, this.started_at.elapsed());
        }
        polled
    }
}

fn record_part(name: &'static str, duration: Duration) {
    CURRENT.with_borrow(|parts| {
        let Some(parts) = parts else { return };
        let mut recorded = parts.0.lock();
        if recorded.parts.len() < MAX_PARTS {
            recorded.parts.push(FinishedPart { name, duration, ended_at: Timestamp::now() });
        }
        let index = recorded.times.iter().position(|(part, _)| *part == name).unwrap_or_else(|| {
            recorded.times.push((name, PartTimes::default()));
            recorded.times.len() - 1
        });
        let times = &mut recorded.times[index].1;
        times.sum += duration;
        times.longest = times.longest.max(duration);
    });
}

/// Formats the log line as `logTrace` and `writeTraceSteps` do. Omits parts that took less than their share of the threshold.
fn trace_text(
    name: &str,
    fields: &str,
    duration: Duration,
    threshold: Duration,
    parts: &[FinishedPart],
) -> String {
    let number = rand::random::<u32>() >> 1;
    let started_at = Timestamp::now().checked_sub(duration).unwrap_or_default();
    let fields = if fields.is_empty() { String::new() } else { format!("{fields} ") };
    let mut text = format!(
        "Trace[{number}]: {name:?} {fields}({}) (total time: {}ms):",
        started_at.strftime("%d-%b-%Y %H:%M:%S%.3f"),
        duration.as_millis()
    );
    let share = threshold / u32::try_from(parts.len() + 1).unwrap_or(u32::MAX);
    for part in parts.iter().filter(|part| part.duration >= share) {
        let ended_at = part.ended_at.strftime("%H:%M:%S%.3f");
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\nTrace[{number}]: ---{:?} {}ms ({ended_at})",
            part.name,
            part.duration.as_millis()
        );
    }
    let duration = format_duration(duration);
    text.push_str(&format!("\nTrace[{number}]: [{duration}] [{duration}] END"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_piece_of_work_is_logged_with_its_slow_parts() {
        let ended_at = Timestamp::from_millisecond(1_795_547_129_803).unwrap();
        let parts = [
            FinishedPart { name: "Commit transaction", duration: Duration::from_millis(3), ended_at },
            FinishedPart { name: "Call validating webhook", duration: Duration::from_millis(600), ended_at },
        ];
        let duration = Duration::from_micros(612_345);
        let text = trace_text("Create", "verb:create", duration, Duration::from_millis(500), &parts);
        let (number, rest) = text.strip_prefix("Trace[").unwrap().split_once(']').unwrap();
        assert!(
            rest.starts_with(": \"Create\" verb:create (") && rest.contains(") (total time: 612ms):\n"),
            "{text}"
        );
        let steps = format!(
            "\nTrace[{number}]: ---\"Call validating webhook\" 600ms (19:05:29.803)\nTrace[{number}]: [612.345ms] [612.345ms] END"
        );
        assert!(text.ends_with(&steps) && !text.contains("Commit"), "{text}");
    }

    #[tokio::test]
    async fn parts_are_recorded_for_the_work_that_polls_them() {
        let watched = watch("w", Duration::from_secs(60), String::new, async {
            part("inside", async {}).await;
            CURRENT.with_borrow(|parts| parts.as_ref().map(|parts| parts.0.lock().parts.len()))
        });
        assert_eq!(watched.await, Some(1));
        part("outside", async {}).await;
        assert!(CURRENT.with_borrow(Option::is_none));
    }

    #[tokio::test]
    async fn times_count_every_part_by_its_name() {
        let (parts, counted) = watch("w", Duration::from_secs(60), String::new, async {
            for _ in 0..=MAX_PARTS {
                part("many", async {}).await;
            }
            record_part("a", Duration::from_millis(2));
            record_part("b", Duration::from_millis(7));
            record_part("a", Duration::from_millis(3));
            (
                CURRENT.with_borrow(|parts| parts.as_ref().map(|parts| parts.0.lock().parts.len())),
                part_times(),
            )
        })
        .await;
        assert_eq!(parts, Some(MAX_PARTS));
        let [(_, _), a, b] = counted[..] else { panic!("{counted:?}") };
        let times = |sum, longest| PartTimes {
            sum: Duration::from_millis(sum),
            longest: Duration::from_millis(longest),
        };
        assert_eq!((a, b), (("a", times(5, 3)), ("b", times(7, 7))));
        assert!(super::part_times().is_empty(), "no work is being polled");
    }
}
