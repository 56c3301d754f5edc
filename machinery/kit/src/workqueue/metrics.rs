//! client-go's work queue metrics, labelled by the queue's name.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::unfinished::{self, Queues, Unfinished, Working};
use crate::metrics::{Histogram, HistogramVec, Registry};

type Name = [(&'static str, String); 1];

const BUCKETS: &[f64] = &[10e-9, 10e-8, 10e-7, 10e-6, 10e-5, 10e-4, 10e-3, 10e-2, 10e-1, 1.0, 10.0];

/// The metric families of all work queues of a process.
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
        let name = "workqueue_unfinished_work_seconds";
        let help = "Seconds of work that goes on, of all keys in work";
        let made = || Unfinished { queues: Queues::default(), figure: unfinished::all };
        let Unfinished { queues, .. } = registry.get_or_register(name, name, help, made);
        let name = "workqueue_longest_running_processor_seconds";
        let help = "Seconds that the key takes that has been in work for longest";
        let longest = Unfinished { queues: queues.clone(), figure: unfinished::longest };
        registry.get_or_register(name, name, help, || longest.clone());
        Self {
            queues,
            depth: registry.gauge_vec("workqueue_depth", "Keys that wait in a work queue"),
            adds: registry.counter_vec("workqueue_adds_total", "Keys added to a work queue"),
            retries: registry.counter_vec("workqueue_retries_total", "Keys added again after a failure"),
            waited: registry.histogram_vec(
                "workqueue_queue_duration_seconds",
                "Seconds that a key waits before it is worked on",
                BUCKETS,
            ),
            worked: registry.histogram_vec(
                "workqueue_work_duration_seconds",
                "Seconds that the work on a key takes",
                BUCKETS,
            ),
        }
    }

    /// Shows how long the work takes that goes on, as long as the queue is there.
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
