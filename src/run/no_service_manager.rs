//! Where nobody speaks systemd's protocol, no service manager is told anything.

/// Nothing.
pub(super) fn ready() {}

/// Nothing.
pub(super) fn status(_: &str) {}

/// Reads files again.
pub(super) async fn reloading(reload: impl Future<Output = ()>) {
    reload.await;
}

/// Nothing.
pub(super) fn stopping() {}
