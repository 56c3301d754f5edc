//! Runs at most five attempts per probe; usually the first is enough (upstream starts all five at once).
//!
//! The first attempt runs alone, over a pooled connection if there is one. The others start when it has failed or has not
//! finished within the hedge delay. The first success ends the probe.

use std::future::Future;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep, timeout_at};

use super::{ProbeFailure, ProbeStage};
use crate::availability::decision::ProbePlan;

/// Attempts of one availability probe.
///
/// Limit (Backends): the APIService is unavailable.
pub const ATTEMPTS: usize = 5;
/// Delay after which the other attempts start if the first has not finished.
pub const HEDGE_DELAY: Duration = Duration::from_millis(250);
/// Timeout of a whole probe, including name resolution and dials.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(6);

/// Makes one attempt of a probe.
pub trait Prober: Send + Sync + 'static {
    /// Makes attempt number `attempt`, against the target with that number modulo the number of targets.
    fn probe(
        &self,
        plan: &ProbePlan,
        attempt: usize,
    ) -> impl Future<Output = Result<(), ProbeFailure>> + Send;
}

/// Probes until the first success, or until all attempts have failed. Returns the failure of the attempt with the lowest
/// number, so that the same state of the backend gives the same message.
///
/// # Errors
/// Returns the failure of the lowest-numbered attempt that failed, or a timeout after [`PROBE_TIMEOUT`].
pub async fn run_attempts<P: Prober>(prober: &P, plan: &ProbePlan) -> Result<(), ProbeFailure> {
    let mut reported: Option<(usize, ProbeFailure)> = None;
    let result = timeout_at(Instant::now() + PROBE_TIMEOUT, race_attempts(prober, plan, &mut reported)).await;
    match (result, reported) {
        (Ok(true), _) => Ok(()),
        (_, Some((_, failure))) => Err(failure),
        (_, None) => Err(ProbeFailure {
            stage: ProbeStage::Dial,
            timed_out: true,
            message: format!("timed out waiting for {}", plan.url()),
        }),
    }
}

/// Returns true if an attempt succeeded; `reported` receives the failure of the lowest-numbered attempt.
async fn race_attempts<P: Prober>(
    prober: &P,
    plan: &ProbePlan,
    reported: &mut Option<(usize, ProbeFailure)>,
) -> bool {
    let one = |number| async move { (number, prober.probe(plan, number).await) };
    let mut running = FuturesUnordered::from_iter([one(0)]);
    let hedge = sleep(HEDGE_DELAY);
    tokio::pin!(hedge);
    let mut started = false;
    loop {
        tokio::select! {
            () = &mut hedge, if !started => {}
            ended = running.next() => match ended {
                None => return false,
                Some((_, Ok(()))) => return true,
                Some((number, Err(failure))) => {
                    if reported.as_ref().is_none_or(|(lowest, _)| number < *lowest) {
                        *reported = Some((number, failure));
                    }
                }
            },
        }
        if !started {
            started = true;
            running.extend((1..ATTEMPTS).map(one));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::availability::tests::plan;

    /// Attempt n takes `0[n].0` ms; `0[n].1` is true if it succeeds.
    struct Script([(u64, bool); ATTEMPTS], AtomicUsize);

    impl Prober for Script {
        async fn probe(&self, _: &ProbePlan, attempt: usize) -> Result<(), ProbeFailure> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let (millis, ok) = self.0[attempt];
            sleep(Duration::from_millis(millis)).await;
            let message = format!("failure {attempt}");
            if ok { Ok(()) } else { Err(ProbeFailure { stage: ProbeStage::Http, timed_out: false, message }) }
        }
    }

    async fn run(script: [(u64, bool); ATTEMPTS]) -> (String, u128, usize) {
        let prober = Script(script, AtomicUsize::new(0));
        let start = Instant::now();
        let reported =
            run_attempts(&prober, &plan()).await.map_or_else(|f| f.to_string(), |()| "ok".to_owned());
        (reported, start.elapsed().as_millis(), prober.1.load(Ordering::Relaxed))
    }

    #[tokio::test(start_paused = true)]
    async fn a_quick_first_attempt_decides_alone() {
        assert_eq!(run([(200, true); 5]).await, ("ok".into(), 200, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_attempts_start_after_an_error_or_the_hedge_delay_and_one_success_is_enough() {
        let (fast, slow) = ((10, false), (20, true));
        assert_eq!(run([fast, fast, slow, fast, fast]).await, ("ok".into(), 30, 5));
        assert_eq!(run([(9_999, true), fast, fast, fast, slow]).await, ("ok".into(), 270, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_fail_the_first_attempts_failure_is_returned() {
        assert_eq!(run([(10, false), (1, false), (1, false), (1, false), (1, false)]).await.0, "failure 0");
        let (reported, took, _) = run([(400, false), (1, false), (1, false), (1, false), (1, false)]).await;
        assert_eq!((reported.as_str(), took), ("failure 0", 400));
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_without_any_response_times_out() {
        let (reported, took, _) = run([(60_000, true); 5]).await;
        assert_eq!((reported.as_str(), took), ("timed out waiting for https://10.0.0.1:443/apis/g/v1", 6000));
    }
}
