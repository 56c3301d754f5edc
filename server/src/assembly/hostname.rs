//! This host's name.

/// This host's name, as leases and events carry it.
pub(super) fn hostname() -> String {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match hostname.trim() {
        "" => "localhost".to_owned(),
        hostname => hostname.to_owned(),
    }
}
