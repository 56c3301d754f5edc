//! Upstream's lifecycle signals: each is sent once, can be awaited by many tasks, and is checked without a lock.
//!
//! Does not depend on the effects of a signal: the process assembly sends signals in upstream's order, and components
//! react to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Event that happens at most once. Clones share the signal.
#[derive(Clone, Debug)]
pub struct Signal {
    inner: Arc<SignalInner>,
}

#[derive(Debug)]
struct SignalInner {
    name: &'static str,
    is_signaled: AtomicBool,
    notify: Notify,
}

impl Signal {
    /// Returns a signal that was not sent yet.
    pub fn new(name: &'static str) -> Self {
        let inner = SignalInner { name, is_signaled: AtomicBool::new(false), notify: Notify::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Returns upstream's name of the signal.
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// Sends the signal. Returns `true` for the first caller only.
    pub fn signal(&self) -> bool {
        let first = !self.inner.is_signaled.swap(true, Ordering::AcqRel);
        if first {
            tracing::debug!(signal = self.inner.name, "lifecycle signal");
            self.inner.notify.notify_waiters();
        }
        first
    }

    /// True if the signal was sent. Costs one atomic load.
    pub fn is_signaled(&self) -> bool {
        self.inner.is_signaled.load(Ordering::Acquire)
    }

    /// Resolves once the signal was sent.
    pub async fn signaled(&self) {
        let notified = self.inner.notify.notified();
        tokio::pin!(notified);
        // Registered before the flag is read, so that a signal sent in between is not missed.
        notified.as_mut().enable();
        if !self.is_signaled() {
            notified.await;
        }
    }
}

/// Signals of one API server process. Clones share them.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    /// A stop was requested (SIGTERM, SIGINT, or the context was cancelled).
    pub shutdown_initiated: Signal,
    /// `--shutdown-delay-duration` has passed since the stop was requested.
    pub after_shutdown_delay_duration: Signal,
    /// All pre-shutdown hooks have returned.
    pub pre_shutdown_hooks_stopped: Signal,
    /// Both previous signals were sent: new requests are refused from now on.
    pub not_accepting_new_request: Signal,
    /// No short request is running, and the grace period of watches is over.
    pub in_flight_requests_drained: Signal,
    /// The listener is closed.
    pub http_server_stopped_listening: Signal,
    /// `/readyz` has succeeded once.
    pub has_been_ready: Signal,
    /// All registered completions were signaled. Before that, the response for an unknown path is 503 instead of 404.
    pub mux_and_discovery_complete: Signal,
    completions: Arc<Mutex<Vec<Signal>>>,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self::new()
    }
}

impl Lifecycle {
    /// Returns signals of which none was sent.
    pub fn new() -> Self {
        Self {
            shutdown_initiated: Signal::new("ShutdownInitiated"),
            after_shutdown_delay_duration: Signal::new("AfterShutdownDelayDuration"),
            pre_shutdown_hooks_stopped: Signal::new("PreShutdownHooksStopped"),
            not_accepting_new_request: Signal::new("NotAcceptingNewRequest"),
            in_flight_requests_drained: Signal::new("InFlightRequestsDrained"),
            http_server_stopped_listening: Signal::new("HTTPServerStoppedListening"),
            has_been_ready: Signal::new("HasBeenReady"),
            mux_and_discovery_complete: Signal::new("MuxAndDiscoveryComplete"),
            completions: Arc::default(),
        }
    }

    /// Registers a completion that `MuxAndDiscoveryComplete` waits for. Must be called before
    /// [`Lifecycle::complete_mux_and_discovery`] runs; the caller sends the returned signal when it is done.
    pub fn register_completion(&self, name: &'static str) -> Signal {
        let signal = Signal::new(name);
        self.completions.lock().push(signal.clone());
        signal
    }

    /// Waits for all registered completions, then sends `MuxAndDiscoveryComplete`. If shutdown begins
    /// first, returns without sending it (upstream's rule).
    pub async fn complete_mux_and_discovery(&self) {
        let completions = self.completions.lock().clone();
        let all = futures::future::join_all(completions.iter().map(Signal::signaled));
        tokio::select! {
            biased;
            () = self.shutdown_initiated.signaled() => {}
            _ = all => { self.mux_and_discovery_complete.signal(); }
        }
    }

    /// Performs the first half of upstream's shutdown: waits for `ShutdownInitiated`, sends
    /// `AfterShutdownDelayDuration` after `delay`, and `NotAcceptingNewRequest` once the pre-shutdown
    /// hooks have stopped as well. The caller that runs the hooks sends `PreShutdownHooksStopped`.
    pub async fn stop_accepting(&self, delay: std::time::Duration) {
        self.shutdown_initiated.signaled().await;
        tokio::time::sleep(delay).await;
        self.after_shutdown_delay_duration.signal();
        self.pre_shutdown_hooks_stopped.signaled().await;
        self.not_accepting_new_request.signal();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::time::Duration;

    #[tokio::test]
    async fn a_signal_is_sent_once_and_seen_by_early_and_late_waiters() {
        let signal = Signal::new("HasBeenReady");
        let early = signal.signaled();
        tokio::pin!(early);
        assert!(early.as_mut().now_or_never().is_none());
        assert!(signal.signal());
        assert!(!signal.signal());
        early.await;
        signal.signaled().await;
        assert!(signal.is_signaled());
    }

    #[tokio::test]
    async fn the_mux_is_complete_when_every_completion_is() {
        let life = Lifecycle::new();
        let (routes, discovery) = (life.register_completion("routes"), life.register_completion("discovery"));
        let wait = life.complete_mux_and_discovery();
        tokio::pin!(wait);
        routes.signal();
        assert!(wait.as_mut().now_or_never().is_none());
        discovery.signal();
        wait.await;
        assert!(life.mux_and_discovery_complete.is_signaled());
    }

    #[tokio::test]
    async fn the_mux_is_never_complete_after_a_stop() {
        let life = Lifecycle::new();
        life.register_completion("routes");
        life.shutdown_initiated.signal();
        life.complete_mux_and_discovery().await;
        assert!(!life.mux_and_discovery_complete.is_signaled());
    }

    #[tokio::test(start_paused = true)]
    async fn new_requests_are_refused_after_the_delay_and_the_hooks() {
        let life = Lifecycle::new();
        let stop = life.stop_accepting(Duration::from_secs(10));
        tokio::pin!(stop);
        life.shutdown_initiated.signal();
        assert!(tokio::time::timeout(Duration::from_secs(9), stop.as_mut()).await.is_err());
        assert!(!life.after_shutdown_delay_duration.is_signaled());
        assert!(tokio::time::timeout(Duration::from_secs(2), stop.as_mut()).await.is_err());
        assert!(life.after_shutdown_delay_duration.is_signaled());
        assert!(!life.not_accepting_new_request.is_signaled());
        life.pre_shutdown_hooks_stopped.signal();
        stop.await;
        assert!(life.not_accepting_new_request.is_signaled());
    }
}
