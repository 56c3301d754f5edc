//! The beginning of a watch, during which it costs what a list does (upstream's `InitializationSignal`).

use futures::{Stream, StreamExt};

/// The same stream; `kept` is dropped when so many of its items have been taken, or when it ends.
pub(super) fn keep_until<S: Stream, K>(
    stream: S,
    items: u64,
    kept: Option<K>,
) -> impl Stream<Item = S::Item> + use<S, K> {
    let (mut left, mut kept) = (items, kept);
    stream.inspect(move |_| {
        left = left.saturating_sub(1);
        if left == 0 {
            drop(kept.take());
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn it_is_dropped_with_the_last_initial_event_or_with_the_watch() {
        let kept = Arc::new(());
        let mut watch = Box::pin(keep_until(stream::iter(0..5), 2, Some(kept.clone())));
        watch.next().await;
        assert_eq!(Arc::strong_count(&kept), 2);
        watch.next().await;
        assert_eq!(Arc::strong_count(&kept), 1);
        let watch = keep_until(stream::iter(0..5), 2, Some(kept.clone()));
        drop(watch);
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
