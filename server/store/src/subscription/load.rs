//! What waits for a subscription.

use std::sync::atomic::{AtomicBool, AtomicUsize};

/// What waits for one subscription: counted by the sender and the receiver, bounded by the sender.
#[derive(Debug, Default)]
pub(crate) struct Load {
    pub(crate) events: AtomicUsize,
    pub(crate) bytes: AtomicUsize,
    pub(crate) lagged: AtomicBool,
    /// Whether it was ended because states changed that it has passed.
    pub(crate) expired: AtomicBool,
}
