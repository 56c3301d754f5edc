//! Host name of this machine.

/// Returns the host name, as used in leases and events.
pub(super) fn hostname() -> String {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match hostname.trim() {
        "" => "localhost".to_owned(),
        hostname => hostname.to_owned(),
    }
}
