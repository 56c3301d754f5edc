//! Deletes expired objects: events, `--event-ttl` after their last write. Upstream delegates this to etcd.

use std::time::Duration;

use portico_kit::tasks::TaskSet;
use portico_registry::{AgeClock, Registry};

/// Interval between two sweeps; a tenth of the time to live if that is shorter.
const PERIOD: Duration = Duration::from_secs(60);
/// Minimum interval between two sweeps.
const MIN_PERIOD: Duration = Duration::from_millis(100);

/// Sweeps at intervals until `tasks` is cancelled.
pub async fn run(registry: Registry, ttl: Duration, tasks: TaskSet) {
    tasks.token().run_until_cancelled(sweep(&registry, ttl)).await;
}

async fn sweep(registry: &Registry, ttl: Duration) {
    let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
    // A single jump of the system clock expires nothing.
    let mut clock = AgeClock::new();
    let mut ticks = tokio::time::interval(PERIOD.min(ttl / 10).max(MIN_PERIOD));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match registry.expire(clock.now().saturating_sub(seconds)).await {
            Ok(0) => {}
            Ok(count) => tracing::debug!(count, "expired objects deleted"),
            Err(status) => tracing::warn!(error = %status, "cannot delete expired objects, retrying"),
        }
    }
}
