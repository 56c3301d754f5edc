//! Publication of the server's health checks on the board, so that each facade shows them under upstream's names.

use std::collections::BTreeSet;
use std::time::Duration;

use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::health::{Health, HealthEndpoint, HealthQuery};
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_proto::convert::{Check, Payload, PayloadKind};

use crate::grpc::config::board::Board;

/// Interval between evaluations of the checks. It increases from 1 ms to 1 s, so that readiness is reported early.
const POLL_INTERVAL: BackoffPolicy =
    BackoffPolicy::new(Duration::from_millis(1), Duration::from_secs(1), 1.3, 0.0);

/// Posts the results of all checks until `tasks` are canceled. `checks_known` is signaled after the first post, `ready` when all
/// checks that readiness requires have passed for the first time.
pub(super) fn publish(health: Health, board: Board, checks_known: Signal, ready: Signal, tasks: &TaskSet) {
    tasks.spawn_until_cancelled("health-checks", async move {
        let mut pause = Backoff::new(POLL_INTERVAL);
        let mut posted = BTreeSet::new();
        loop {
            let results = evaluate(&health).await;
            let readyz = HealthEndpoint::Readyz.name();
            let is_readiness_check =
                |check: &Check| check.endpoints.iter().any(|endpoint| endpoint == readyz);
            let awaited = |name: &str| !Check::REPAIRED_OVER_API.contains(&name);
            if results.iter().all(|(name, check)| check.ok || !is_readiness_check(check) || !awaited(name)) {
                ready.signal();
            }
            let names: BTreeSet<String> = results.iter().map(|(name, _)| name.clone()).collect();
            let removed = posted.difference(&names).map(|name| (PayloadKind::Check, name.clone(), None));
            let now = results
                .iter()
                .map(|(name, check)| (PayloadKind::Check, name.clone(), Some(Payload::Check(check.clone()))));
            board.post(now.chain(removed).collect::<Vec<_>>());
            checks_known.signal();
            posted = names;
            tokio::time::sleep(pause.next_wait()).await;
        }
    });
}

/// Evaluates each check, with the endpoints that include it.
async fn evaluate(health: &Health) -> Vec<(String, Check)> {
    let mut all: Vec<(String, Check)> = Vec::new();
    for endpoint in [HealthEndpoint::Healthz, HealthEndpoint::Livez, HealthEndpoint::Readyz] {
        for checked in health.run(endpoint, &HealthQuery::default()).await.results {
            let (ok, message) = (checked.failure.is_none(), checked.failure.or(checked.warning));
            match all.iter_mut().find(|(name, _)| *name == checked.name) {
                Some((_, check)) => check.endpoints.push(endpoint.name().to_owned()),
                None => {
                    let check = Check {
                        endpoints: vec![endpoint.name().to_owned()],
                        ok,
                        message: message.unwrap_or_default(),
                    };
                    all.push((checked.name, check));
                }
            }
        }
    }
    all
}
