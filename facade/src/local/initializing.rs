//! The initial events of a watch, during which it costs as much as a list (upstream's `InitializationSignal`).

use futures::{Stream, StreamExt};
use portico_proto::objects::WatchResponse;
use portico_proto::objects::watch_response::Step;
use tonic::Status;

/// Passes on the steps; drops `guard` after `initial` of them or at their end. A watch that is restarted before its first event
/// reports a new number of initial events.
pub(super) fn keep_until<S, K>(
    steps: S,
    initial: u64,
    kept: Option<K>,
) -> impl Stream<Item = Result<WatchResponse, Status>> + use<S, K>
where
    S: Stream<Item = Result<WatchResponse, Status>>,
{
    let (mut left, mut kept) = (initial, kept);
    steps.inspect(move |step| {
        left = match step {
            Ok(WatchResponse { step: Some(Step::Started(started)), .. }) => started.initial_frames,
            _ => left.saturating_sub(1),
        };
        if left == 0 {
            drop(kept.take());
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
    async fn kept_after<const N: usize>(steps: [Step; N]) -> [bool; N] {
        let kept = Arc::new(());
        let steps = steps.map(|step| Ok(WatchResponse { step: Some(step), ..WatchResponse::default() }));
        let mut watch = Box::pin(keep_until(stream::iter(steps), 2, Some(kept.clone())));
        let mut after = [false; N];
        for is_kept in &mut after {
            watch.next().await;
            *is_kept = Arc::strong_count(&kept) == 2;
        }
        drop(watch);
        assert_eq!(Arc::strong_count(&kept), 1);
        after
    }

    #[tokio::test]
    async fn it_is_dropped_with_the_last_initial_event_or_with_the_watch() {
        assert_eq!(kept_after([frames(), frames(), frames()]).await, [true, false, false]);
        assert_eq!(kept_after([frames()]).await, [true]);
    }

    #[tokio::test]
    async fn a_watch_that_begins_anew_has_as_many_initial_events_as_it_reports_then() {
        assert_eq!(kept_after([started(3), frames(), frames(), frames()]).await, [true, true, true, false]);
        assert_eq!(kept_after([started(0), frames()]).await, [false, false]);
        assert_eq!(kept_after([frames(), frames(), started(0)]).await, [true, false, false]);
    }
}
