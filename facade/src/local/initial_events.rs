//! Phase of the initial events of a watch, in which the watch costs as much as a list (upstream's `InitializationSignal`).

use futures::{Stream, StreamExt};
use portico_proto::objects::WatchResponse;
use portico_proto::objects::watch_response::Step;
use tonic::Status;

/// Passes on the steps; drops `guard` after `initial` of them or at their end. A watch that is restarted before its first event
/// reports a new number of initial events.
pub(super) fn hold_until_initialized<S, K>(
    steps: S,
    initial: u64,
    guard: Option<K>,
) -> impl Stream<Item = Result<WatchResponse, Status>> + use<S, K>
where
    S: Stream<Item = Result<WatchResponse, Status>>,
{
    let (mut remaining, mut held_guard) = (initial, guard);
    steps.inspect(move |step| {
        remaining = match step {
            Ok(WatchResponse { step: Some(Step::Started(started)), .. }) => started.initial_frames,
            _ => remaining.saturating_sub(1),
        };
        if remaining == 0 {
            drop(held_guard.take());
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::stream;
    use portico_proto::objects::WatchStarted;

    use super::*;

    fn started(initial_frames: u64) -> Step {
        Step::Started(WatchStarted { initial_frames, ..WatchStarted::default() })
    }

    fn frames() -> Step {
        Step::Frames("{}".into())
    }

    /// Returns, for each of these steps, true if the guard is still held after it.
    async fn held_after<const N: usize>(steps: [Step; N]) -> [bool; N] {
        let guard = Arc::new(());
        let steps = steps.map(|step| Ok(WatchResponse { step: Some(step), ..WatchResponse::default() }));
        let mut watch = Box::pin(hold_until_initialized(stream::iter(steps), 2, Some(guard.clone())));
        let mut after = [false; N];
        for is_held in &mut after {
            watch.next().await;
            *is_held = Arc::strong_count(&guard) == 2;
        }
        drop(watch);
        assert_eq!(Arc::strong_count(&guard), 1);
        after
    }

    #[tokio::test]
    async fn the_guard_is_dropped_with_the_last_initial_event_or_with_the_watch() {
        assert_eq!(held_after([frames(), frames(), frames()]).await, [true, false, false]);
        assert_eq!(held_after([frames()]).await, [true]);
    }

    #[tokio::test]
    async fn a_restarted_watch_reports_its_number_of_initial_events() {
        assert_eq!(held_after([started(3), frames(), frames(), frames()]).await, [true, true, true, false]);
        assert_eq!(held_after([started(0), frames()]).await, [false, false]);
        assert_eq!(held_after([frames(), frames(), started(0)]).await, [true, false, false]);
    }
}
