//! A running facade, and upstream's way to stop it (4.5).

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
use super::proxying::Proxying;
use super::readiness::ready;
use super::serving::Serving;
use crate::settings::FacadeSettings;

/// Time for connections to close at shutdown once no request is in flight.
///
/// Limit (Serving): connections are closed.
const GOODBYE: Duration = Duration::from_secs(2);

/// What is read again when files change.
pub(super) type Files = (Serving, AuthFiles, Proxying);

/// A facade that serves. Dropping it does not stop it: see [`RunningFacade::shutdown`].
pub struct RunningFacade {
    addr: SocketAddr,
    settings: FacadeSettings,
    parts: Parts,
    drain: drain::Signal,
    connections: TaskSet,
    files: Files,
}

impl RunningFacade {
    pub(super) fn new(
        addr: SocketAddr,
        settings: FacadeSettings,
        parts: Parts,
        drain: drain::Signal,
        connections: TaskSet,
        files: Files,
    ) -> Self {
        Self { addr, settings, parts, drain, connections, files }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The signals of its life.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.parts.lifecycle
    }

    /// Its hooks: pre-shutdown hooks may be added.
    pub fn hooks(&self) -> &Hooks {
        &self.parts.hooks
    }

    /// Addresses that are listeners of this process, too, and that backends must not lie at.
    pub fn add_own_listener(&self, addr: SocketAddr) {
        self.files.2.policy.add_own_listener(addr);
    }

    /// Resolves when a configuration is in force.
    pub fn configured(&self) -> impl Future<Output = ()> + Send + use<> {
        let synced = self.parts.configuration.synced.clone();
        async move { synced.signaled().await }
    }

    /// Resolves when `/readyz` would answer 200: asks itself, since nobody else may.
    pub async fn ready(&self) {
        ready(self.parts.configuration.synced.clone(), self.parts.health.clone()).await;
    }

    /// Resolves when a part failed without which the facade cannot go on.
    pub fn failed(&self) -> impl Future<Output = TaskFailure> + Send + use<> {
        let tasks = self.parts.tasks.clone();
        async move { tasks.failed().await }
    }

    /// Looks at certificate, CA and token files now (SIGHUP). What cannot be used is returned and stays as it was.
    pub async fn reload(&self) -> Vec<FileError> {
        let (serving, auth, proxying) = &self.files;
        let mut errors = serving.reload().await;
        errors.extend(auth.reload().await);
        errors.extend(proxying.reload().await);
        errors
    }

    /// Stops without waiting for anybody: requests that are under way, and watches, are cut off. The process must end soon.
    pub fn shutdown_at_once(self) {
        self.parts.lifecycle.shutdown_initiated.signal();
        self.drain.signal();
        self.parts.watches.cancel();
        self.connections.cancel();
        self.parts.tasks.cancel();
    }

    /// Stops as upstream does: not ready at once, full service during the delay, then no new requests, then drained.
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
        self.drained().await;
        life.in_flight_requests_drained.signal();
        self.drain.signal();
        self.parts.watches.cancel();
        let cut = self.connections.shutdown(GOODBYE).await;
        if !cut.is_empty() {
            tracing::info!(
                connections = cut.join(", "),
                "connections still open at the end of the shutdown grace period, closing"
            );
        }
        life.http_server_stopped_listening.signal();
        let mut aborted = self.parts.watches.shutdown(GOODBYE).await;
        aborted.extend(self.parts.tasks.shutdown(GOODBYE).await);
        if !aborted.is_empty() {
            tracing::info!(tasks = aborted.join(", "), "tasks aborted");
        }
    }

    /// Waits for short requests, and for watches as long as their grace.
    async fn drained(&self) {
        self.parts.short.close();
        let short = tokio::time::timeout(self.settings.request_timeout, self.parts.short.drained());
        if short.await.is_err() {
            tracing::warn!(
                requests = self.parts.short.len(),
                "requests still in flight after the request timeout"
            );
        }
        let grace = self.settings.shutdown_watch_termination_grace_period;
        if !grace.is_zero() {
            self.parts.watching.close();
            let _ = tokio::time::timeout(grace, self.parts.watching.drained()).await;
        }
    }
}
