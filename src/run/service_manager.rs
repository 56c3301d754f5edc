//! Notifies the service manager: systemd's NOTIFY_SOCKET, for a unit of `Type=notify`.

use sd_notify::NotifyState;

/// The process is ready.
pub(super) fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Sets the status text.
pub(super) fn status(text: &str) {
    notify(&[NotifyState::Status(text)]);
}

/// The process reads its files again while `reload` runs.
pub(super) async fn reloading(reload: impl Future<Output = ()>) {
    // Absent without a monotonic clock; only units that wait for reloads need it.
    let now = NotifyState::monotonic_usec_now().ok();
    notify(&[Some(NotifyState::Reloading), now].into_iter().flatten().collect::<Vec<_>>());
    reload.await;
    ready();
}

/// The process is stopping.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Sends states; does nothing without NOTIFY_SOCKET.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
