//! A signal and its watches: accept loops and streams select on a watch, and the owner of the signal
//! learns when all of them have let go. It must not know what is drained, nor why.

use tokio::sync::watch;

/// The owner's side of a drain. Dropping it counts as signalling.
#[derive(Debug)]
pub struct Signal {
    tx: watch::Sender<bool>,
}

/// A participant's side of a drain; holding it (or a clone) keeps [`Signal::released`] waiting.
#[derive(Clone, Debug)]
pub struct Watch {
    rx: watch::Receiver<bool>,
}

/// A signal and its first watch.
pub fn channel() -> (Signal, Watch) {
    let (tx, rx) = watch::channel(false);
    (Signal { tx }, Watch { rx })
}

impl Signal {
    /// One more watch of this signal. It sees the signal also when that was given before.
    pub fn watch(&self) -> Watch {
        Watch { rx: self.tx.subscribe() }
    }

    /// Signals every watch to drain. Does not wait; giving it twice changes nothing.
    pub fn signal(&self) {
        self.tx.send_replace(true);
    }

    /// Waits until every watch has been dropped, whether or not the signal was given.
    pub async fn released(&self) {
        self.tx.closed().await;
    }

    /// How many watches are still held.
    pub fn held(&self) -> usize {
        self.tx.receiver_count()
    }

    /// Signals, then waits until every watch has been dropped.
    pub async fn drain(&self) {
        self.signal();
        self.released().await;
    }
}

impl Watch {
    /// Resolves once the signal has been given. Cancel safe; may be awaited again.
    pub async fn signaled(&mut self) {
        // An error means that the owner is gone: there is nobody left to work for.
        let _ = self.rx.wait_for(|given| *given).await;
    }

    /// Whether the signal has been given.
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
        assert_eq!(signal.held(), 1);
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
