//! Platforms without systemd: no service manager is notified.

pub(super) fn ready() {}

pub(super) fn status(_: &str) {}

/// Reads files again.
pub(super) async fn reloading(reload: impl Future<Output = ()>) {
    reload.await;
}

pub(super) fn stopping() {}
