//! State that a dispatcher shares with its seats.

use std::time::Instant;

use tokio::sync::Notify;

use super::waker::SeatWaker;
use crate::controller::FlowController;
use crate::estimator::WorkEstimator;
use crate::inflight::{InflightCounts, Observe};

/// State shared by a dispatcher and its seats.
pub(super) struct SharedState {
    pub(super) controller: FlowController<SeatWaker>,
    pub(super) estimator: WorkEstimator,
    pub(super) inflight: InflightCounts,
    /// Notified when lingering seats exist that requests wait for.
    pub(super) due_notify: Notify,
}

impl SharedState {
    pub(super) fn new(seats: u32, observe: Observe) -> Self {
        Self {
            controller: FlowController::new(seats),
            estimator: WorkEstimator::default(),
            inflight: InflightCounts::new(observe),
            due_notify: Notify::new(),
        }
    }

    /// Notifies the task that releases lingering seats, if there is a due time.
    pub(super) fn notify_due(&self, due: Option<Instant>) {
        if due.is_some() {
            self.due_notify.notify_one();
        }
    }
}
