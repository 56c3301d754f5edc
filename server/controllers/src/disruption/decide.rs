//! Computes the status of a PodDisruptionBudget from its pods (`pkg/controller/disruption`). Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portico_machinery::{Cursor, Object, time};
use portico_registry::condition::{self, Condition};

/// Maximum time between a granted eviction and the deletion of the pod (`DeletionTimeout`).
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_secs(2 * 60);
/// Maximum age of a DisruptionTarget condition of a pod that is not deleted (`stalePodDisruptionTimeout`).
const STALE_TIMEOUT: SignedDuration = SignedDuration::from_secs(2 * 60);
/// Condition type of budgets.
const ALLOWED: &str = "DisruptionAllowed";
/// Condition type of pods.
const TARGET: &str = "DisruptionTarget";

/// Expected numbers of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// All pods.
    pub pods: i64,
    pub healthy: i64,
}

/// Returns true if a budget is relative to the scale of the pods' controllers rather than to the existing pods.
#[must_use]
pub fn counts_scale(budget: &Object) -> bool {
    let spec = budget.at(&["spec"]);
    spec.field("maxUnavailable").is_present() || spec.field("minAvailable").opt_str().is_some()
}

/// Computes the expected numbers (`getExpectedPodCount`) from the number of existing `pods` and from the total `scale`
/// of their controllers.
///
/// # Errors
/// Returns an error if a percentage cannot be parsed.
pub fn expected(budget: &Object, pods: i64, scale: i64) -> Result<Expected, String> {
    let spec = budget.at(&["spec"]);
    let (max, min) = (spec.field("maxUnavailable"), spec.field("minAvailable"));
    if max.is_present() {
        return Ok(Expected { pods: scale, healthy: (scale - scaled(&max, scale)?).max(0) });
    }
    match min.i64() {
        Some(healthy) => Ok(Expected { pods, healthy }),
        None if min.is_present() => Ok(Expected { pods: scale, healthy: scaled(&min, scale)? }),
        None => Ok(Expected { pods: 0, healthy: 0 }),
    }
}

/// Returns a number, or a percentage of a total, rounded up (`GetScaledValueFromIntOrPercent`).
fn scaled(value: &Cursor<'_>, total: i64) -> Result<i64, String> {
    if let Some(number) = value.i64() {
        return Ok(number);
    }
    let text = value.str();
    let Some(percent) = text.strip_suffix('%') else {
        return Err("invalid value for IntOrString: invalid type: string is not a percentage".to_owned());
    };
    let percent: i64 =
        percent.parse().map_err(|_| format!("invalid value for IntOrString: invalid value {text:?}"))?;
    Ok((percent.saturating_mul(total)).saturating_add(99).div_euclid(100))
}

/// Granted evictions whose pods are not deleted yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disrupted {
    /// Times of the evictions, by pod.
    pub pods: BTreeMap<String, String>,
    /// Pods that were not deleted in time.
    pub late: BTreeSet<String>,
    /// Time until the first eviction expires.
    pub recheck: Option<Duration>,
}

/// Returns the granted evictions without those whose pods are deleted, are being deleted, or were not deleted in time
/// (`buildDisruptedPodMap`).
#[must_use]
pub fn disrupted(budget: &Object, pods: &[&Object], now: Timestamp) -> Disrupted {
    let mut disrupted = Disrupted::default();
    let granted = budget.at(&["status", "disruptedPods"]);
    for pod in pods.iter().filter(|pod| pod.deletion_timestamp().is_none()) {
        let Some(at) = granted.entry_str(pod.name()) else { continue };
        let Some(left) = time::parse(at).and_then(|at| left_of(DELETION_TIMEOUT, at, now)) else {
            disrupted.late.insert(pod.name().to_owned());
            continue;
        };
        disrupted.recheck = Some(disrupted.recheck.map_or(left, |earlier| earlier.min(left)));
        disrupted.pods.insert(pod.name().to_owned(), at.to_owned());
    }
    disrupted
}

/// Returns the rest of a timeout that started at `since`; `None` if it is over.
fn left_of(timeout: SignedDuration, since: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(timeout.saturating_sub(now.duration_since(since))).ok()
}

/// Returns the number of pods that are ready, not being deleted and not about to be evicted (`countHealthyPods`).
#[must_use]
pub fn healthy(pods: &[&Object], disrupted: &Disrupted) -> i64 {
    let counts = |pod: &&&Object| {
        pod.deletion_timestamp().is_none()
            && !disrupted.pods.contains_key(pod.name())
            && condition::is_true(pod, "Ready")
    };
    i64::try_from(pods.iter().filter(counts).count()).unwrap_or(i64::MAX)
}

/// Returns the budget with an updated status; `None` if the status is up to date (`updatePdbStatus`).
#[must_use]
pub fn reported(
    budget: &Object,
    expected: Expected,
    healthy: i64,
    disrupted: &BTreeMap<String, String>,
    now: Timestamp,
) -> Option<Object> {
    let spare = if expected.pods > 0 { (healthy - expected.healthy).max(0) } else { 0 };
    let mut reported = budget.clone();
    let numbers = [
        ("disruptionsAllowed", spare),
        ("currentHealthy", healthy),
        ("desiredHealthy", expected.healthy),
        ("expectedPods", expected.pods),
        ("observedGeneration", budget.generation()),
    ];
    let is_same = |(field, number): &(&str, i64)| budget.at(&["status", field]).i64().unwrap_or(0) == *number;
    let granted = budget.at(&["status", "disruptedPods"]);
    let has_same_pods = granted.len() == disrupted.len()
        && disrupted.iter().all(|(pod, at)| granted.entry_str(pod) == Some(at));
    let (status, reason) = if spare > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let has_same_condition =
        condition::get(budget, ALLOWED).is_some_and(|c| c.status == status && c.reason == reason);
    if numbers.iter().all(is_same) && has_same_pods && has_same_condition {
        return None;
    }
    for (field, number) in numbers {
        reported.set(&["status", field], number);
    }
    match disrupted.is_empty() {
        true => drop(reported.remove(&["status", "disruptedPods"])),
        false => reported.set(&["status", "disruptedPods"], disrupted),
    }
    let observed_generation = Some(budget.generation());
    let condition = Condition { observed_generation, ..Condition::new(ALLOWED, status, reason, "") };
    condition::set(&mut reported, condition, now);
    Some(reported)
}

/// Returns the budget with no disruptions allowed and the reason for the failure (`failSafe`).
#[must_use]
pub fn failed(budget: &Object, why: &str, now: Timestamp) -> Object {
    let mut failed = budget.clone();
    failed.set(&["status", "disruptionsAllowed"], 0);
    let observed_generation = budget.at(&["status", "observedGeneration"]).i64().or(Some(0));
    let condition = Condition { observed_generation, ..Condition::new(ALLOWED, "False", "SyncFailed", why) };
    condition::set(&mut failed, condition, now);
    failed
}

/// Returns the time until a pod's DisruptionTarget condition is stale; `None` if the pod has no such condition, or if it never
/// becomes stale (`nonTerminatingPodHasStaleDisruptionCondition`).
#[must_use]
pub fn stale_after(pod: &Object, now: Timestamp) -> Option<Duration> {
    let claim = condition::get(pod, TARGET)?;
    let has_ended = matches!(pod.str_at("status.phase"), "Succeeded" | "Failed");
    let is_kubelets = claim.reason == "TerminationByKubelet";
    if pod.deletion_timestamp().is_some() || claim.status != "True" || is_kubelets || has_ended {
        return None;
    }
    let since = claim.last_transition_time.as_deref().and_then(time::parse).unwrap_or(Timestamp::UNIX_EPOCH);
    Some(left_of(STALE_TIMEOUT, since, now).unwrap_or_default())
}

/// Returns the pod with the condition DisruptionTarget set to `False`.
#[must_use]
pub fn calmed(pod: &Object, now: Timestamp) -> Object {
    let mut calmed = pod.clone();
    let observed_generation = condition::get(pod, TARGET).and_then(|claim| claim.observed_generation);
    let generation = observed_generation.map(|_| pod.generation());
    let condition = Condition { observed_generation: generation, ..Condition::new(TARGET, "False", "", "") };
    condition::set(&mut calmed, condition, now);
    calmed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Object {
        Object::from_json(json.as_bytes()).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        time::parse(text).unwrap()
    }

    const NOW: &str = "2026-01-01T00:01:00Z";

    #[test]
    fn what_is_expected_follows_numbers_and_shares() {
        let rows = [
            (r#"{"minAvailable":2}"#, Expected { pods: 3, healthy: 2 }, false),
            (r#"{"minAvailable":"50%"}"#, Expected { pods: 5, healthy: 3 }, true),
            (r#"{"maxUnavailable":2}"#, Expected { pods: 5, healthy: 3 }, true),
            (r#"{"maxUnavailable":"30%"}"#, Expected { pods: 5, healthy: 3 }, true),
            (r#"{"maxUnavailable":9}"#, Expected { pods: 5, healthy: 0 }, true),
            (r#"{"maxUnavailable":"100%"}"#, Expected { pods: 5, healthy: 0 }, true),
            ("{}", Expected { pods: 0, healthy: 0 }, false),
        ];
        for (spec, want, by_scale) in rows {
            let budget = object(&format!(r#"{{"spec":{spec}}}"#));
            assert_eq!(expected(&budget, 3, 5), Ok(want), "{spec}");
            assert_eq!(counts_scale(&budget), by_scale, "{spec}");
        }
        assert!(expected(&object(r#"{"spec":{"minAvailable":"x"}}"#), 3, 5).is_err());
    }

    #[test]
    fn a_status_is_written_once_and_its_condition_shows_whether_pods_can_be_spared() {
        let budget = object(r#"{"metadata":{"name":"b","generation":2}}"#);
        let few = Expected { pods: 3, healthy: 3 };
        let none = BTreeMap::new();
        let written = reported(&budget, few, 3, &none, at(NOW)).unwrap();
        assert_eq!(written.at(&["status", "disruptionsAllowed"]).i64(), Some(0));
        let condition = condition::get(&written, ALLOWED).unwrap();
        assert_eq!((condition.reason.as_str(), condition.observed_generation), ("InsufficientPods", Some(2)));
        assert_eq!(reported(&written, few, 3, &none, at("2026-01-01T00:09:00Z")), None);
        let spared = reported(&written, Expected { healthy: 1, ..few }, 3, &none, at(NOW)).unwrap();
        assert_eq!(spared.at(&["status", "disruptionsAllowed"]).i64(), Some(2));
        assert_eq!(condition::get(&spared, ALLOWED).unwrap().reason, "SufficientPods");
        let unmatched = reported(&spared, Expected { pods: 0, healthy: 0 }, 0, &none, at(NOW)).unwrap();
        assert_eq!(unmatched.at(&["status", "disruptionsAllowed"]).i64(), Some(0));
        let failed = failed(&spared, "because", at(NOW));
        assert_eq!(condition::get(&failed, ALLOWED).unwrap().message, "because");
    }

    #[test]
    fn granted_evictions_count_until_the_pod_goes_or_time_is_up() {
        let budget = object(
            r#"{"status":{"disruptedPods":{"late":"2025-12-31T23:58:59Z","soon":"2026-01-01T00:00:30Z",
            "gone":"2026-01-01T00:00:30Z","going":"2026-01-01T00:00:30Z"}}}"#,
        );
        let pod = |name: &str, more: &str| {
            object(&format!(
                r#"{{"metadata":{{"name":"{name}"{more}}},"status":{{"conditions":[{{"type":"Ready","status":"True"}}]}}}}"#
            ))
        };
        let pods = [
            pod("late", ""),
            pod("soon", ""),
            pod("going", r#","deletionTimestamp":"2026-01-01T00:00:40Z""#),
            pod("other", ""),
        ];
        let pods: Vec<&Object> = pods.iter().collect();
        let found = disrupted(&budget, &pods, at(NOW));
        assert_eq!(found.pods.keys().collect::<Vec<_>>(), ["soon"]);
        assert_eq!(found.recheck, Some(Duration::from_secs(90)));
        assert_eq!(found.late.iter().collect::<Vec<_>>(), ["late"]);
        assert_eq!(healthy(&pods, &found), 2);
    }

    #[test]
    fn a_pod_that_is_not_deleted_loses_its_disruption_condition() {
        let pod = |more: &str, phase: &str| {
            object(&format!(
                r#"{{"metadata":{{}},"status":{{"phase":"{phase}","conditions":[{{"type":"DisruptionTarget","status":"True",
                "lastTransitionTime":"2026-01-01T00:00:00Z"{more}}}]}}}}"#
            ))
        };
        assert_eq!(stale_after(&pod("", "Running"), at(NOW)), Some(Duration::from_secs(60)));
        assert_eq!(stale_after(&pod("", "Running"), at("2026-01-01T01:00:00Z")), Some(Duration::ZERO));
        assert_eq!(stale_after(&pod("", "Failed"), at(NOW)), None);
        assert_eq!(stale_after(&pod(r#","reason":"TerminationByKubelet""#, "Running"), at(NOW)), None);
        let calmed = calmed(&pod(r#","reason":"x""#, "Running"), at(NOW));
        let condition = condition::get(&calmed, TARGET).unwrap();
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", ""));
    }
}
