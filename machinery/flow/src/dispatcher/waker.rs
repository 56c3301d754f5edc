//! Wakes a request that waits.

use tokio::sync::oneshot;

use crate::level::Wake;

/// See the module.
#[derive(Debug)]
pub struct Waker(oneshot::Sender<()>);

impl Waker {
    /// And what the request waits for.
    pub(super) fn new() -> (Self, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }
}

impl Wake for Waker {
    fn wake(self) {
        // Whoever has stopped waiting gives up its ticket itself.
        let _ = self.0.send(());
    }
}
