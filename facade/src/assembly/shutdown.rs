//! A running facade and its shutdown, in upstream's order (section 4.5).

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use portico_kit::certs::FileError;
use portico_kit::drain;
use portico_kit::hooks::Hooks;
use portico_kit::lifecycle::Lifecycle;
use portico_kit::tasks::{TaskFailure, TaskSet};

use super::Parts;
use super::authentication::AuthFiles;
use super::proxying::ProxyAssembly;
use super::readiness::ready;
use super::serving::ServingTls;
use crate::settings::FacadeSettings;

/// Time for connections to close at shutdown once no request is in flight.
///
/// Limit (Serving): connections are closed.
const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// Files that are reread when they change.
pub(super) type ReloadableFiles = (ServingTls, AuthFiles, ProxyAssembly);

/// A running facade. Dropping it does not stop it; call [`RunningFacade::shutdown`].
pub struct RunningFacade {
    addr: SocketAddr,
    settings: FacadeSettings,
    parts: Parts,
    drain: drain::Signal,
    connections: TaskSet,
    files: ReloadableFiles,
}

impl RunningFacade {
    pub(super) fn new(
        addr: SocketAddr,
        settings: FacadeSettings,
        parts: Parts,
        drain: drain::Signal,
        connections: TaskSet,
        files: ReloadableFiles,
    ) -> Self {
        Self { addr, settings, parts, drain, connections, files }
    }

    /// Address of the listener.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Lifecycle signals.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.parts.lifecycle
    }

    /// Hooks; pre-shutdown hooks can be added.
    pub fn hooks(&self) -> &Hooks {
        &self.parts.hooks
    }

    /// Adds a listener of this process, which backends must not have as address.
    pub fn add_own_listener(&self, addr: SocketAddr) {
        self.files.2.policy.add_own_listener(addr);
    }

    /// Resolves when a configuration is active.
    pub fn wait_until_configured(&self) -> impl Future<Output = ()> + Send + use<> {
        let synced = self.parts.configuration.synced.clone();
        async move { synced.signaled().await }
    }

    /// Resolves when `/readyz` would return 200. Evaluates the checks itself, because access to `/readyz` can be restricted.
    pub async fn ready(&self) {
        ready(self.parts.configuration.synced.clone(), self.parts.health.clone()).await;
    }

    /// Resolves when a required task has failed.
    pub fn failed(&self) -> impl Future<Output = TaskFailure> + Send + use<> {
        let tasks = self.parts.tasks.clone();
        async move { tasks.failed().await }
    }

    /// Rereads certificate, CA and token files now (SIGHUP). Returns the errors of unusable files; their old contents
    /// stay in use.
    pub async fn reload(&self) -> Vec<FileError> {
        let (serving, auth, proxying) = &self.files;
        let mut errors = serving.reload().await;
        errors.extend(auth.reload().await);
        errors.extend(proxying.reload().await);
        errors
    }

    /// Stops without draining: cuts off requests in flight and watches. The process must end soon.
    pub fn shutdown_at_once(self) {
        self.parts.lifecycle.shutdown_initiated.signal();
        self.drain.signal();
        self.parts.watches.cancel();
        self.connections.cancel();
        self.parts.tasks.cancel();
    }

    /// Stops in upstream's order: not ready at once, full service during the delay, then no new requests, then a drain.
    pub async fn shutdown(self) {
        let life = self.parts.lifecycle.clone();
        life.shutdown_initiated.signal();
        let hooks = async {
            if let Err(error) = self.parts.hooks.run_pre_shutdown(&self.parts.tasks).await {
                tracing::error!(%error, "shutdown hook failed, continuing to shut down");
            }
            life.pre_shutdown_hooks_stopped.signal();
        };
        tokio::join!(life.stop_accepting(self.settings.shutdown_delay_duration), hooks);
        if !self.settings.shutdown_send_retry_after {
            self.drain.signal();
        }
        self.drain_requests().await;
        life.in_flight_requests_drained.signal();
        self.drain.signal();
        self.parts.watches.cancel();
        let cut = self.connections.shutdown(DRAIN_GRACE).await;
        if !cut.is_empty() {
            tracing::info!(
                connections = cut.join(", "),
                "connections still open at the end of the shutdown grace period, closing"
            );
        }
        life.http_server_stopped_listening.signal();
        let mut aborted = self.parts.watches.shutdown(DRAIN_GRACE).await;
        aborted.extend(self.parts.tasks.shutdown(DRAIN_GRACE).await);
        if !aborted.is_empty() {
            tracing::info!(tasks = aborted.join(", "), "tasks aborted");
        }
    }

    /// Waits for short requests, and for watches during their grace period.
    async fn drain_requests(&self) {
        self.parts.short_requests.close();
        let short_requests_drained =
            tokio::time::timeout(self.settings.request_timeout, self.parts.short_requests.drained());
        if short_requests_drained.await.is_err() {
            tracing::warn!(
                requests = self.parts.short_requests.len(),
                "requests still in flight after the request timeout"
            );
        }
        let grace = self.settings.shutdown_watch_termination_grace_period;
        if !grace.is_zero() {
            self.parts.watch_requests.close();
            let _ = tokio::time::timeout(grace, self.parts.watch_requests.drained()).await;
        }
    }
}
