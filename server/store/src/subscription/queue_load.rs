//! Load of the queue of a subscription.

use std::sync::atomic::{AtomicBool, AtomicUsize};

/// Number and size of the queued events of one subscription: updated by the sender and the receiver, limited by the sender.
#[derive(Debug, Default)]
pub(crate) struct QueueLoad {
    pub(crate) events: AtomicUsize,
    pub(crate) bytes: AtomicUsize,
    pub(crate) lagged: AtomicBool,
    /// True if the subscription was ended because states that it has passed have changed.
    pub(crate) expired: AtomicBool,
}
