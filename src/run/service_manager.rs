//! What a service manager that waits for it is told: systemd's NOTIFY_SOCKET, for a unit of `Type=notify`.

use sd_notify::NotifyState;

/// It serves.
pub(super) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// What it waits for, for people; empty when for nothing.
pub(super) fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// It reads its files again for as long as `reload` takes.
pub(super) async fn reloading(reload: impl Future<Output = ()>) {
    // Absent where there is no such clock; the message is complete enough for units that do not wait for reloads.
    let now = NotifyState::monotonic_usec_now().ok();
    tell(&[Some(NotifyState::Reloading), now].into_iter().flatten().collect::<Vec<_>>());
    reload.await;
    ready();
}

/// It is about to end.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Without NOTIFY_SOCKET nobody is told.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}
