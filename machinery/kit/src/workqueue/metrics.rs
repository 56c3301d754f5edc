//! Work queue metrics of client-go, labeled by the name of the queue.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::unfinished::{self, Queues, Unfinished, Working};
use crate::metrics::{Desc, Histogram, HistogramVec, Registry};

type Name = [(&'static str, String); 1];

const BUCKETS: &[f64] = &[10e-9, 10e-8, 10e-7, 10e-6, 10e-5, 10e-4, 10e-3, 10e-2, 10e-1, 1.0, 10.0];

/// Metric families of all work queues of a process.
#[derive(Clone)]
pub struct QueueMetrics {
    depth: Family<Name, Gauge>,
    adds: Family<Name, Counter>,
    retries: Family<Name, Counter>,
    waited: HistogramVec<Name>,
    worked: HistogramVec<Name>,
    queues: Queues,
}

pub(super) struct Handles {
    pub(super) depth: Gauge,
    pub(super) adds: Counter,
    pub(super) retries: Counter,
    pub(super) waited: Histogram,
    pub(super) worked: Histogram,
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
        let made = || Unfinished { queues: Queues::default(), figure: unfinished::all };
        let Unfinished { queues, .. } = registry.get_or_register(desc, made);
        let desc = Desc::gauge(
            "workqueue_longest_running_processor_seconds",
            &["name"],
            "[BETA] How many seconds has the longest running processor for workqueue been \
             running.",
        );
        let longest = Unfinished { queues: queues.clone(), figure: unfinished::longest };
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
            waited: registry.histogram_vec(
                Desc::histogram(
                    "workqueue_queue_duration_seconds",
                    &["name"],
                    "[BETA] How long in seconds an item stays in workqueue before being requested.",
                ),
                BUCKETS,
            ),
            worked: registry.histogram_vec(
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
    pub(super) fn follow(&self, name: &str, queue: &Arc<dyn Working>) {
        self.queues.lock().push((name.to_owned(), Arc::downgrade(queue)));
    }

    pub(super) fn of(&self, name: &str) -> Handles {
        let label = [("name", name.to_owned())];
        Handles {
            depth: self.depth.get_or_create_owned(&label),
            adds: self.adds.get_or_create_owned(&label),
            retries: self.retries.get_or_create_owned(&label),
            waited: self.waited.get_or_create_owned(&label),
            worked: self.worked.get_or_create_owned(&label),
        }
    }
}
