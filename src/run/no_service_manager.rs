//! Replacement of `service_manager` for platforms without systemd: nothing is notified.

pub(super) fn ready() {}

pub(super) fn status(_: &str) {}

/// Runs `reload`, which reads files again.
pub(super) async fn reloading(reload: impl Future<Output = ()>) {
    reload.await;
}

pub(super) fn stopping() {}
