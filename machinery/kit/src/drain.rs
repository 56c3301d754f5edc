//! Drain signal and its watches: accept loops and streams select on a watch, and the owner of the signal
//! can wait until all watches are dropped. Does not depend on the work that is drained.

use tokio::sync::watch;

/// Owner's side of a drain. Dropping it counts as signaling.
#[derive(Debug)]
pub struct Signal {
    tx: watch::Sender<bool>,
}

/// Participant's side of a drain. While it or a clone exists, [`Signal::released`] waits.
#[derive(Clone, Debug)]
pub struct Watch {
    rx: watch::Receiver<bool>,
}

/// Returns a signal and its first watch.
pub fn channel() -> (Signal, Watch) {
    let (tx, rx) = watch::channel(false);
    (Signal { tx }, Watch { rx })
}

impl Signal {
    /// Returns another watch of this signal. It also sees a signal that was sent earlier.
    pub fn watch(&self) -> Watch {
        Watch { rx: self.tx.subscribe() }
    }

    /// Signals every watch to drain. Does not wait; repeated calls have no effect.
    pub fn signal(&self) {
        self.tx.send_replace(true);
    }

    /// Waits until every watch is dropped, also if the signal was not sent.
    pub async fn released(&self) {
        self.tx.closed().await;
    }

    /// Returns the number of watches that still exist.
    pub fn watch_count(&self) -> usize {
        self.tx.receiver_count()
    }

    /// Signals, then waits until every watch has been dropped.
    pub async fn drain(&self) {
        self.signal();
        self.released().await;
    }
}

impl Watch {
    /// Resolves once the signal was sent. Cancel safe; may be awaited again.
    pub async fn signaled(&mut self) {
        // An error means that the owner was dropped, which counts as a signal.
        let _ = self.rx.wait_for(|signaled| *signaled).await;
    }

    /// True if the signal was sent or its owner was dropped.
    pub fn is_signaled(&self) -> bool {
        *self.rx.borrow() || self.rx.has_changed().is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn draining_waits_for_the_last_watch() {
        let (signal, mut first) = channel();
        let second = first.clone();
        assert!(!first.is_signaled());
        signal.signal();
        first.signaled().await;
        assert!(second.is_signaled());
        assert!(signal.released().now_or_never().is_none());
        drop(first);
        assert_eq!(signal.watch_count(), 1);
        drop(second);
        signal.drain().await;
    }

    #[tokio::test]
    async fn a_late_watch_and_an_orphan_both_see_the_signal() {
        let (signal, watch) = channel();
        drop(watch);
        signal.signal();
        let mut late = signal.watch();
        late.signaled().await;
        let (signal, mut orphan) = channel();
        drop(signal);
        orphan.signaled().await;
        assert!(orphan.is_signaled());
    }
}
