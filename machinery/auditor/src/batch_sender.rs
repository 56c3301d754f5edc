//! Events buffered in the background and delivered in batches (upstream's `bufferedBackend`).

use std::sync::Arc;

use bytes::Bytes;
use portico_kit::tasks::TaskSet;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::destination::Destination;
use crate::settings::AuditBatchSettings;
use crate::throttle::Throttle;

/// Batches in flight to the audit webhook.
///
/// kube-apiserver has no limit.
///
/// Limit (Audit): further ones wait in the buffer.
const MAX_IN_FLIGHT: usize = 16;

/// Task that collects events into batches and sends them.
pub(super) struct BatchSender {
    events: mpsc::Receiver<Bytes>,
    settings: AuditBatchSettings,
    /// Maximum size of a batch; larger ones are split.
    max_bytes: Option<usize>,
    destination: Arc<Destination>,
    throttle: Option<Throttle>,
    in_flight: Arc<Semaphore>,
    tasks: TaskSet,
}

impl BatchSender {
    /// Starts collecting the events of the returned queue. The task ends with `tasks`, after it has delivered all queued events.
    pub(super) fn start(
        settings: AuditBatchSettings,
        max_bytes: Option<usize>,
        destination: &Arc<Destination>,
        tasks: &TaskSet,
    ) -> mpsc::Sender<Bytes> {
        let (queue, events) = mpsc::channel(settings.buffer);
        let this = Self {
            events,
            settings,
            max_bytes,
            destination: Arc::clone(destination),
            throttle: settings.throttle.map(|(qps, burst)| Throttle::new(qps, burst)),
            in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            tasks: tasks.clone(),
        };
        tasks.spawn("audit-batches", this.run());
        queue
    }

    async fn run(mut self) {
        let stop = self.tasks.token();
        while !stop.is_cancelled() {
            let batch = self.next_batch(&stop).await;
            self.send(batch).await;
        }
        self.events.close();
        loop {
            let mut batch = Vec::new();
            if self.events.recv_many(&mut batch, self.settings.max_size).await == 0 {
                return;
            }
            self.send(batch).await;
        }
    }

    /// Collects the next batch: full, or the events that arrived before its deadline or shutdown.
    async fn next_batch(&mut self, stop: &CancellationToken) -> Vec<Bytes> {
        let (mut batch, max) = (Vec::new(), self.settings.max_size);
        let deadline = Instant::now().checked_add(self.settings.max_wait);
        let end = async {
            match deadline {
                // A batch of one event is complete at once, no deadline applies.
                Some(end) if max > 1 => sleep_until(end).await,
                _ => std::future::pending().await,
            }
        };
        let mut end = std::pin::pin!(end);
        while batch.len() < max {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => batch.push(event),
                    None => break,
                },
                () = &mut end => break,
                () = stop.cancelled() => break,
            }
        }
        batch
    }

    async fn send(&mut self, batch: Vec<Bytes>) {
        for batch in split_batch(batch, self.max_bytes) {
            if let Some(throttle) = &mut self.throttle {
                throttle.accept().await;
            }
            let destination = Arc::clone(&self.destination);
            if matches!(&*destination, Destination::Log(_)) {
                // The log is written by this task, to keep the order of lines.
                destination.deliver(batch, false).await;
                continue;
            }
            let Ok(permit) = Arc::clone(&self.in_flight).acquire_owned().await else { return };
            self.tasks.spawn("audit-batch", async move {
                destination.deliver(batch, true).await;
                drop(permit);
            });
        }
    }
}

/// Splits a batch into batches of at most `max_bytes`; a single larger event is a batch by itself.
fn split_batch(batch: Vec<Bytes>, max_bytes: Option<usize>) -> Vec<Vec<Bytes>> {
    let max = max_bytes.unwrap_or(usize::MAX);
    let (mut batches, mut size): (Vec<Vec<Bytes>>, usize) = (Vec::new(), 0);
    for event in batch {
        match batches.last_mut() {
            Some(last) if size.saturating_add(event.len()) <= max => {
                size += event.len();
                last.push(event);
            }
            _ => {
                size = event.len();
                batches.push(vec![event]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_split_where_it_exceeds_the_maximum_size() {
        let events = |sizes: &[usize]| sizes.iter().map(|size| Bytes::from(vec![0; *size])).collect();
        let sizes = |max| {
            let batches = split_batch(events(&[3, 3, 9, 1, 5]), max);
            batches.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(None), [5]);
        assert_eq!(sizes(Some(6)), [2, 1, 2]);
        assert_eq!(sizes(Some(1)), [1, 1, 1, 1, 1]);
        assert!(split_batch(Vec::new(), None).is_empty());
    }
}
