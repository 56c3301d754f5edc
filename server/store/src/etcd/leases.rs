//! Leases of expiring objects, each shared by many objects, like kube-apiserver's (`lease_manager.go`): etcd deletes the
//! objects when the lease ends.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::client::Client;
use super::failure::Failure;
use super::settings::EtcdSettings;

/// Lease that was granted last.
struct Given {
    id: i64,
    time_to_live: Duration,
    ends: Instant,
    objects: u64,
}

/// Manager of leases.
pub(super) struct Leases {
    given: Mutex<Option<Given>>,
    reuse: Duration,
    most: u64,
}

impl Leases {
    pub(super) fn new(settings: &EtcdSettings) -> Self {
        Self { given: Mutex::default(), reuse: settings.lease_reuse, most: settings.lease_objects.max(1) }
    }

    /// Returns a lease that lasts at least this long, and not much longer.
    pub(super) async fn lease(&self, client: &Client, time_to_live: Duration) -> Result<i64, Failure> {
        let extra = self.reuse.min(time_to_live / 20);
        let now = Instant::now();
        let mut given = self.given.lock().await;
        if let Some(last) = given.as_mut().filter(|last| last.time_to_live == time_to_live) {
            let lasts = now + time_to_live < last.ends && now + time_to_live + extra > last.ends;
            last.objects += 1;
            if lasts && last.objects <= self.most {
                return Ok(last.id);
            }
        }
        let whole = time_to_live + extra;
        let seconds = i64::try_from(whole.as_secs().max(1)).unwrap_or(i64::MAX);
        let id = client.grant(seconds).await?;
        *given = Some(Given { id, time_to_live, ends: now + whole, objects: 1 });
        Ok(id)
    }
}
