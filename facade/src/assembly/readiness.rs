//! Readiness of a facade, for the process that started it and for listeners that accept connections only when all is ready.

use std::time::Duration;

use portico_kit::drain;
use portico_kit::health::{Health, HealthEndpoint, HealthQuery};
use portico_kit::lifecycle::Signal;
use portico_proto::convert::Check;

/// Interval between two checks of readiness.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Resolves when a configuration is active and `/readyz` would return 200, without the checks in [`Check::REPAIRED_OVER_API`].
pub(super) async fn ready(synced: Signal, health: Health) {
    synced.signaled().await;
    let query = HealthQuery {
        exclude: Check::REPAIRED_OVER_API.map(str::to_owned).to_vec(),
        ..HealthQuery::default()
    };
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    while !health.run(HealthEndpoint::Readyz, &query).await.has_passed() {
        ticks.tick().await;
    }
}

/// Resolves when connections may be accepted: at once, or, if `waits_for_readiness`, when the facade is ready or stops.
pub(super) async fn wait_until_servable(
    waits_for_readiness: bool,
    synced: Signal,
    health: Health,
    mut drain: drain::Watch,
) {
    if waits_for_readiness {
        tokio::select! {
            () = ready(synced, health) => {}
            () = drain.signaled() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use portico_kit::health;

    use super::*;

    #[tokio::test]
    async fn a_process_is_ready_while_checks_fail_that_are_repaired_over_the_api() {
        let (synced, health) = (Signal::new("synced"), Health::new(Duration::ZERO));
        for name in Check::REPAIRED_OVER_API {
            let fails = health::Check::new(name, || Err("it fails".to_owned()));
            health.add(&[HealthEndpoint::Readyz], fails).unwrap();
        }
        synced.signal();
        ready(synced, health).await;
    }
}
