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
    static CURRENT: RefCell<Option<Arc<Parts>>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Parts(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    /// Parts in order, up to the maximum number.
    each: Vec<Part>,
    /// Durations of all parts, by name.
    times: Vec<(&'static str, Times)>,
}

/// Durations of all parts with one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Sum of the durations, for parts that run one after another.
    pub sum: Duration,
    /// Longest duration, for parts that run concurrently.
    pub longest: Duration,
}

struct Part {
    name: &'static str,
    took: Duration,
    ended: Timestamp,
}

pin_project! {
    /// Future returned by [`watch`].
    pub struct Watched<F, D> {
        #[pin]
        work: F,
        name: &'static str,
        threshold: Duration,
        begun: Instant,
        parts: Arc<Parts>,
        describe: Option<D>,
    }
}

pin_project! {
    /// Future returned by [`part`].
    pub struct Timed<F> {
        #[pin]
        work: F,
        name: &'static str,
        begun: Instant,
    }
}

/// Logs the work if it takes at least `threshold`; `describe` returns its fields, as `key:value,key:value`.
pub fn watch<F: Future, D: FnOnce() -> String>(
    name: &'static str,
    threshold: Duration,
    describe: D,
    work: F,
) -> Watched<F, D> {
    let (begun, parts) = (Instant::now(), Arc::default());
    Watched { work, name, threshold, begun, parts, describe: Some(describe) }
}

/// Records the duration of a part of the watched work.
pub fn part<F: Future>(name: &'static str, work: F) -> Timed<F> {
    Timed { work, name, begun: Instant::now() }
}

/// Returns the durations of the finished parts of the work that is being polled, by name.
pub fn times() -> Vec<(&'static str, Times)> {
    CURRENT.with_borrow(|parts| parts.as_ref().map(|parts| parts.0.lock().times.clone()).unwrap_or_default())
}

impl<F: Future, D: FnOnce() -> String> Future for Watched<F, D> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let noting = Noting { outer: CURRENT.replace(Some(this.parts.clone())) };
        let polled = this.work.poll(cx);
        drop(noting);
        let took = this.begun.elapsed();
        if polled.is_ready() && took >= *this.threshold {
            let fields = this.describe.take().map(|describe| describe()).unwrap_or_default();
            let text = text(this.name, &fields, took, *this.threshold, &this.parts.0.lock().each);
            tracing::info!(target: "trace", "{text}");
        }
        polled
    }
}

/// Guard that restores the outer work on drop, also after a panic.
struct Noting {
    outer: Option<Arc<Parts>>,
}

impl Drop for Noting {
    fn drop(&mut self) {
        CURRENT.set(self.outer.take());
    }
}

impl<F: Future> Future for Timed<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let polled = this.work.poll(cx);
        if polled.is_ready() {
            note(this.name, this.begun.elapsed());
        }
        polled
    }
}

fn note(name: &'static str, took: Duration) {
    CURRENT.with_borrow(|parts| {
        let Some(parts) = parts else { return };
        let mut noted = parts.0.lock();
        if noted.each.len() < MAX_PARTS {
            noted.each.push(Part { name, took, ended: Timestamp::now() });
        }
        let at = noted.times.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            noted.times.push((name, Times::default()));
            noted.times.len() - 1
        });
        let times = &mut noted.times[at].1;
        times.sum += took;
        times.longest = times.longest.max(took);
    });
}

/// Formats the log line as `logTrace` and `writeTraceSteps` do. Omits parts that took less than their share of the threshold.
fn text(name: &str, fields: &str, took: Duration, threshold: Duration, parts: &[Part]) -> String {
    let number = rand::random::<u32>() >> 1;
    let began = Timestamp::now().checked_sub(took).unwrap_or_default();
    let fields = if fields.is_empty() { String::new() } else { format!("{fields} ") };
    let mut text = format!(
        "Trace[{number}]: {name:?} {fields}({}) (total time: {}ms):",
        began.strftime("%d-%b-%Y %H:%M:%S%.3f"),
        took.as_millis()
    );
    let share = threshold / u32::try_from(parts.len() + 1).unwrap_or(u32::MAX);
    for part in parts.iter().filter(|part| part.took >= share) {
        let ended = part.ended.strftime("%H:%M:%S%.3f");
        // Writing to a String cannot fail.
        let _ = write!(text, "\nTrace[{number}]: ---{:?} {}ms ({ended})", part.name, part.took.as_millis());
    }
    let took = format_duration(took);
    text.push_str(&format!("\nTrace[{number}]: [{took}] [{took}] END"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_piece_of_work_is_logged_with_its_slow_parts() {
        let ended = Timestamp::from_millisecond(1_795_547_129_803).unwrap();
        let parts = [
            Part { name: "Commit transaction", took: Duration::from_millis(3), ended },
            Part { name: "Call validating webhook", took: Duration::from_millis(600), ended },
        ];
        let took = Duration::from_micros(612_345);
        let text = text("Create", "verb:create", took, Duration::from_millis(500), &parts);
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
    async fn parts_belong_to_the_work_that_they_are_polled_in() {
        let watched = watch("w", Duration::from_secs(60), String::new, async {
            part("inside", async {}).await;
            CURRENT.with_borrow(|parts| parts.as_ref().map(|parts| parts.0.lock().each.len()))
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
            note("a", Duration::from_millis(2));
            note("b", Duration::from_millis(7));
            note("a", Duration::from_millis(3));
            (CURRENT.with_borrow(|parts| parts.as_ref().map(|parts| parts.0.lock().each.len())), times())
        })
        .await;
        assert_eq!(parts, Some(MAX_PARTS));
        let [(_, _), a, b] = counted[..] else { panic!("{counted:?}") };
        let times =
            |sum, longest| Times { sum: Duration::from_millis(sum), longest: Duration::from_millis(longest) };
        assert_eq!((a, b), (("a", times(5, 3)), ("b", times(7, 7))));
        assert!(super::times().is_empty(), "nothing is watched any longer");
    }
}
