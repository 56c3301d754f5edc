//! Leases of expiring objects, each shared by many objects, like kube-apiserver's (`lease_manager.go`): etcd deletes the
//! objects when the lease ends.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::client::Client;
use super::failure::EtcdFailure;
use super::settings::EtcdSettings;

/// Lease that was granted last.
struct CachedLease {
    id: i64,
    time_to_live: Duration,
    expires_at: Instant,
    objects: u64,
}

/// Manager of leases.
pub(super) struct Leases {
    cached: Mutex<Option<CachedLease>>,
    reuse: Duration,
    max_objects: u64,
}

impl Leases {
    pub(super) fn new(settings: &EtcdSettings) -> Self {
        Self {
            cached: Mutex::default(),
            reuse: settings.lease_reuse,
            max_objects: settings.lease_objects.max(1),
        }
    }

    /// Returns a lease that lasts at least this long, and not much longer.
    pub(super) async fn lease(&self, client: &Client, time_to_live: Duration) -> Result<i64, EtcdFailure> {
        let extra = self.reuse.min(time_to_live / 20);
        let now = Instant::now();
        let mut cached = self.cached.lock().await;
        if let Some(last) = cached.as_mut().filter(|last| last.time_to_live == time_to_live) {
            let is_suitable =
                now + time_to_live < last.expires_at && now + time_to_live + extra > last.expires_at;
            last.objects += 1;
            if is_suitable && last.objects <= self.max_objects {
                return Ok(last.id);
            }
        }
        let granted = time_to_live + extra;
        let seconds = i64::try_from(granted.as_secs().max(1)).unwrap_or(i64::MAX);
        let id = client.grant(seconds).await?;
        *cached = Some(CachedLease { id, time_to_live, expires_at: now + granted, objects: 1 });
        Ok(id)
    }
}
