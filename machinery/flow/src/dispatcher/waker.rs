//! Waker of a waiting request.

use tokio::sync::oneshot;

use crate::level::Wake;

/// Waker of a request that waits for a seat.
#[derive(Debug)]
pub struct SeatWaker(oneshot::Sender<()>);

impl SeatWaker {
    /// Returns a waker and the receiver that it notifies.
    pub(super) fn new() -> (Self, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }
}

impl Wake for SeatWaker {
    fn wake(self) {
        // A request that no longer waits abandons its ticket itself.
        let _ = self.0.send(());
    }
}
