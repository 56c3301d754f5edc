//! Work queue metrics of client-go, labeled by the name of the queue.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::unfinished_work::{self, ProcessingQueue, Queues, UnfinishedWorkGauge};
use crate::metrics::{Desc, Histogram, HistogramVec, Registry};

type Name = [(&'static str, String); 1];

const BUCKETS: &[f64] = &[10e-9, 10e-8, 10e-7, 10e-6, 10e-5, 10e-4, 10e-3, 10e-2, 10e-1, 1.0, 10.0];

/// Metric families of all work queues of a process.
#[derive(Clone)]
pub struct QueueMetrics {
    depth: Family<Name, Gauge>,
    adds: Family<Name, Counter>,
    retries: Family<Name, Counter>,
    queue_duration: HistogramVec<Name>,
    work_duration: HistogramVec<Name>,
    queues: Queues,
}

pub(super) struct QueueMetricHandles {
    pub(super) depth: Gauge,
    pub(super) adds: Counter,
    pub(super) retries: Counter,
    pub(super) queue_duration: Histogram,
    pub(super) work_duration: Histogram,
}

impl QueueMetrics {
    /// Registers `workqueue_{depth,adds_total,retries_total,queue_duration_seconds,work_duration_seconds}` and
    /// `workqueue_{unfinished_work,longest_running_processor}_seconds`.
    pub fn new(registry: &Registry) -> Self {
        let desc = Desc::gauge(
            "workqueue_unfinished_work_seconds",
            &["name"],
            "[BETA] How many seconds of work has done that is in progress and hasn't been \
             observed by work_duration. Large values indicate stuck threads. One can deduce \
             the number of stuck threads by observing the rate at which this increases.",
        );
        let new_gauge = || UnfinishedWorkGauge { queues: Queues::default(), aggregate: unfinished_work::sum };
        let UnfinishedWorkGauge { queues, .. } = registry.get_or_register(desc, new_gauge);
        let desc = Desc::gauge(
            "workqueue_longest_running_processor_seconds",
            &["name"],
            "[BETA] How many seconds has the longest running processor for workqueue been \
             running.",
        );
        let longest = UnfinishedWorkGauge { queues: queues.clone(), aggregate: unfinished_work::longest };
        registry.get_or_register(desc, || longest.clone());
        Self {
            queues,
            depth: registry.gauge_vec(Desc::gauge(
                "workqueue_depth",
                &["name"],
                "[BETA] Current depth of workqueue",
            )),
            adds: registry.counter_vec(Desc::counter(
                "workqueue_adds_total",
                &["name"],
                "[BETA] Total number of adds handled by workqueue",
            )),
            retries: registry.counter_vec(Desc::counter(
                "workqueue_retries_total",
                &["name"],
                "[BETA] Total number of retries handled by workqueue",
            )),
            queue_duration: registry.histogram_vec(
                Desc::histogram(
                    "workqueue_queue_duration_seconds",
                    &["name"],
                    "[BETA] How long in seconds an item stays in workqueue before being requested.",
                ),
                BUCKETS,
            ),
            work_duration: registry.histogram_vec(
                Desc::histogram(
                    "workqueue_work_duration_seconds",
                    &["name"],
                    "[BETA] How long in seconds processing an item from workqueue takes.",
                ),
                BUCKETS,
            ),
        }
    }

    /// Exposes the durations of running work of a queue, as long as the queue exists.
    pub(super) fn register_queue(&self, name: &str, queue: &Arc<dyn ProcessingQueue>) {
        self.queues.lock().push((name.to_owned(), Arc::downgrade(queue)));
    }

    pub(super) fn handles_for(&self, name: &str) -> QueueMetricHandles {
        let label = [("name", name.to_owned())];
        QueueMetricHandles {
            depth: self.depth.get_or_create_owned(&label),
            adds: self.adds.get_or_create_owned(&label),
            retries: self.retries.get_or_create_owned(&label),
            queue_duration: self.queue_duration.get_or_create_owned(&label),
            work_duration: self.work_duration.get_or_create_owned(&label),
        }
    }
}
