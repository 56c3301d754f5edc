//! Drops the metric series of resources that are no longer served.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::active_config::ActiveConfigCell;
use crate::local::LocalMetrics;
use crate::metrics::RequestMetrics;

/// Time between two passes.
const INTERVAL: Duration = Duration::from_secs(60);

/// Drops series until canceled.
pub(super) async fn drop_unserved(
    current: ActiveConfigCell,
    requests: Arc<RequestMetrics>,
    local: LocalMetrics,
) {
    let mut passes = interval(INTERVAL);
    passes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        passes.tick().await;
        let routes = Arc::clone(&current.load().routes);
        requests.retain(|group, version| routes.serves(group, version));
        local.retain(|group, version| routes.serves(group, version));
    }
}
