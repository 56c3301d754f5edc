//! When a facade is ready, for those who wait for it: whoever has started it, and connections where they are to wait.

use std::time::Duration;

use portico_kit::drain;
use portico_kit::health::{Endpoint, Health, HealthQuery};
use portico_kit::lifecycle::Signal;
use portico_proto::convert::Check;

/// How often readiness is looked at until it is there.
const PERIOD: Duration = Duration::from_millis(2);

/// Resolves when a configuration has come and `/readyz` would answer 200, but for [`Check::REPAIRED_OVER_API`].
pub(super) async fn ready(synced: Signal, health: Health) {
    synced.signaled().await;
    let query = HealthQuery {
        exclude: Check::REPAIRED_OVER_API.map(str::to_owned).to_vec(),
        ..HealthQuery::default()
    };
    let mut ticks = tokio::time::interval(PERIOD);
    while !health.run(Endpoint::Readyz, &query).await.passed() {
        ticks.tick().await;
    }
}

/// Resolves when connections may be taken: at once, or, where they are to wait until then, when all is ready or is to stop.
pub(super) async fn may_serve(waits: bool, synced: Signal, health: Health, mut drain: drain::Watch) {
    if waits {
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
            health.add(&[Endpoint::Readyz], fails).unwrap();
        }
        synced.signal();
        ready(synced, health).await;
    }
}
