//! Notifies systemd over NOTIFY_SOCKET, for units of `Type=notify`.

use sd_notify::NotifyState;

/// Notifies systemd that the process is ready.
pub(super) fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Sets the status text that systemd shows.
pub(super) fn status(text: &str) {
    notify(&[NotifyState::Status(text)]);
}

/// Runs `reload`, and notifies systemd that the process reloads its files in the meantime.
pub(super) async fn reloading(reload: impl Future<Output = ()>) {
    // The time is missing without a monotonic clock; only units that wait for reloads need it.
    let now = NotifyState::monotonic_usec_now().ok();
    notify(&[Some(NotifyState::Reloading), now].into_iter().flatten().collect::<Vec<_>>());
    reload.await;
    ready();
}

/// Notifies systemd that the process is stopping.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Sends states to systemd if NOTIFY_SOCKET is set.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
