//! What a dispatcher and the seats that it has given out share.

use std::time::Instant;

use tokio::sync::Notify;

use super::waker::Waker;
use crate::controller::Controller;
use crate::current::{Current, Observe};
use crate::estimator::Estimator;

/// See the module.
pub(super) struct Shared {
    pub(super) controller: Controller<Waker>,
    pub(super) estimator: Estimator,
    pub(super) current: Current,
    /// Somebody waits for seats that come back by themselves.
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

    /// Has seats given back at this moment.
    pub(super) fn look_after(&self, due: Option<Instant>) {
        if due.is_some() {
            self.lingering.notify_one();
        }
    }
}
