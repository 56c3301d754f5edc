//! State that a dispatcher shares with its seats.

use std::time::Instant;

use tokio::sync::Notify;

use super::waker::Waker;
use crate::controller::Controller;
use crate::current::{Current, Observe};
use crate::estimator::Estimator;

/// State shared by a dispatcher and its seats.
pub(super) struct Shared {
    pub(super) controller: Controller<Waker>,
    pub(super) estimator: Estimator,
    pub(super) current: Current,
    /// Notified when lingering seats exist that requests wait for.
    pub(super) lingering: Notify,
}

impl Shared {
    pub(super) fn new(seats: u32, observe: Observe) -> Self {
        Self {
            controller: Controller::new(seats),
            estimator: Estimator::default(),
            current: Current::new(observe),
            lingering: Notify::new(),
        }
    }

    /// Notifies the task that releases lingering seats, if there is a due time.
    pub(super) fn look_after(&self, due: Option<Instant>) {
        if due.is_some() {
            self.lingering.notify_one();
        }
    }
}
