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
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
/// Condition type of pods.
const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Expected numbers of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedPods {
    /// All pods.
    pub pods: i64,
    pub healthy: i64,
}

/// Returns true if a budget is relative to the scale of the pods' controllers rather than to the existing pods.
#[must_use]
pub fn needs_scale(budget: &Object) -> bool {
    let spec = budget.at(&["spec"]);
    spec.field("maxUnavailable").is_present() || spec.field("minAvailable").opt_str().is_some()
}

/// Computes the expected numbers (`getExpectedPodCount`) from the number of existing `pods` and from the total `scale`
/// of their controllers.
///
/// # Errors
/// Returns an error if a percentage cannot be parsed.
pub fn expected(budget: &Object, pods: i64, scale: i64) -> Result<ExpectedPods, String> {
    let spec = budget.at(&["spec"]);
    let (max, min) = (spec.field("maxUnavailable"), spec.field("minAvailable"));
    if max.is_present() {
        return Ok(ExpectedPods { pods: scale, healthy: (scale - scaled_value(&max, scale)?).max(0) });
    }
    match min.i64() {
        Some(healthy) => Ok(ExpectedPods { pods, healthy }),
        None if min.is_present() => Ok(ExpectedPods { pods: scale, healthy: scaled_value(&min, scale)? }),
        None => Ok(ExpectedPods { pods: 0, healthy: 0 }),
    }
}

/// Returns a number, or a percentage of a total, rounded up (`GetScaledValueFromIntOrPercent`).
fn scaled_value(value: &Cursor<'_>, total: i64) -> Result<i64, String> {
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
pub struct GrantedEvictions {
    /// Times of the evictions, by pod.
    pub pods: BTreeMap<String, String>,
    /// Pods that were not deleted in time.
    pub overdue: BTreeSet<String>,
    /// Time until the first eviction expires.
    pub recheck: Option<Duration>,
}

/// Returns the granted evictions without those whose pods are deleted, are being deleted, or were not deleted in time
/// (`buildDisruptedPodMap`).
#[must_use]
pub fn granted_evictions(budget: &Object, pods: &[&Object], now: Timestamp) -> GrantedEvictions {
    let mut disrupted = GrantedEvictions::default();
    let granted = budget.at(&["status", "disruptedPods"]);
    for pod in pods.iter().filter(|pod| pod.deletion_timestamp().is_none()) {
        let Some(eviction_time) = granted.entry_str(pod.name()) else { continue };
        let Some(remaining_time) =
            time::parse(eviction_time).and_then(|at| remaining(DELETION_TIMEOUT, at, now))
        else {
            disrupted.overdue.insert(pod.name().to_owned());
            continue;
        };
        disrupted.recheck =
            Some(disrupted.recheck.map_or(remaining_time, |earlier| earlier.min(remaining_time)));
        disrupted.pods.insert(pod.name().to_owned(), eviction_time.to_owned());
    }
    disrupted
}

/// Returns the rest of a timeout that started at `since`; `None` if it is over.
fn remaining(timeout: SignedDuration, since: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(timeout.saturating_sub(now.duration_since(since))).ok()
}

/// Returns the number of pods that are ready, not being deleted and not about to be evicted (`countHealthyPods`).
#[must_use]
pub fn count_healthy(pods: &[&Object], disrupted: &GrantedEvictions) -> i64 {
    let is_healthy = |pod: &&&Object| {
        pod.deletion_timestamp().is_none()
            && !disrupted.pods.contains_key(pod.name())
            && condition::is_true(pod, "Ready")
    };
    i64::try_from(pods.iter().filter(is_healthy).count()).unwrap_or(i64::MAX)
}

/// Returns the budget with an updated status; `None` if the status is up to date (`updatePdbStatus`).
#[must_use]
pub fn with_status(
    budget: &Object,
    expected: ExpectedPods,
    healthy: i64,
    disrupted: &BTreeMap<String, String>,
    now: Timestamp,
) -> Option<Object> {
    let allowed = if expected.pods > 0 { (healthy - expected.healthy).max(0) } else { 0 };
    let mut reported = budget.clone();
    let numbers = [
        ("disruptionsAllowed", allowed),
        ("currentHealthy", healthy),
        ("desiredHealthy", expected.healthy),
        ("expectedPods", expected.pods),
        ("observedGeneration", budget.generation()),
    ];
    let is_same = |(field, number): &(&str, i64)| budget.at(&["status", field]).i64().unwrap_or(0) == *number;
    let granted = budget.at(&["status", "disruptedPods"]);
    let has_same_pods = granted.len() == disrupted.len()
        && disrupted.iter().all(|(pod, at)| granted.entry_str(pod) == Some(at));
    let (status, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let has_same_condition =
        condition::get(budget, DISRUPTION_ALLOWED).is_some_and(|c| c.status == status && c.reason == reason);
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
    let condition =
        Condition { observed_generation, ..Condition::new(DISRUPTION_ALLOWED, status, reason, "") };
    condition::set(&mut reported, condition, now);
    Some(reported)
}

/// Returns the budget with no disruptions allowed and the reason for the failure (`failSafe`).
#[must_use]
pub fn with_failure(budget: &Object, reason: &str, now: Timestamp) -> Object {
    let mut failed = budget.clone();
    failed.set(&["status", "disruptionsAllowed"], 0);
    let observed_generation = budget.at(&["status", "observedGeneration"]).i64().or(Some(0));
    let condition = Condition {
        observed_generation,
        ..Condition::new(DISRUPTION_ALLOWED, "False", "SyncFailed", reason)
    };
    condition::set(&mut failed, condition, now);
    failed
}

/// Returns the time until a pod's DisruptionTarget condition is stale; `None` if the pod has no such condition, or if it never
/// becomes stale (`nonTerminatingPodHasStaleDisruptionCondition`).
#[must_use]
pub fn stale_after(pod: &Object, now: Timestamp) -> Option<Duration> {
    let target_condition = condition::get(pod, DISRUPTION_TARGET)?;
    let has_ended = matches!(pod.str_at("status.phase"), "Succeeded" | "Failed");
    let is_set_by_kubelet = target_condition.reason == "TerminationByKubelet";
    if pod.deletion_timestamp().is_some()
        || target_condition.status != "True"
        || is_set_by_kubelet
        || has_ended
    {
        return None;
    }
    let since = target_condition
        .last_transition_time
        .as_deref()
        .and_then(time::parse)
        .unwrap_or(Timestamp::UNIX_EPOCH);
    Some(remaining(STALE_TIMEOUT, since, now).unwrap_or_default())
}

/// Returns the pod with the condition DisruptionTarget set to `False`.
#[must_use]
pub fn without_disruption_target(pod: &Object, now: Timestamp) -> Object {
    let mut updated = pod.clone();
    let observed_generation =
        condition::get(pod, DISRUPTION_TARGET).and_then(|condition| condition.observed_generation);
    let generation = observed_generation.map(|_| pod.generation());
    let condition =
        Condition { observed_generation: generation, ..Condition::new(DISRUPTION_TARGET, "False", "", "") };
    condition::set(&mut updated, condition, now);
    updated
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
    fn expected_pods_follow_numbers_and_percentages() {
        let rows = [
            (r#"{"minAvailable":2}"#, ExpectedPods { pods: 3, healthy: 2 }, false),
            (r#"{"minAvailable":"50%"}"#, ExpectedPods { pods: 5, healthy: 3 }, true),
            (r#"{"maxUnavailable":2}"#, ExpectedPods { pods: 5, healthy: 3 }, true),
            (r#"{"maxUnavailable":"30%"}"#, ExpectedPods { pods: 5, healthy: 3 }, true),
            (r#"{"maxUnavailable":9}"#, ExpectedPods { pods: 5, healthy: 0 }, true),
            (r#"{"maxUnavailable":"100%"}"#, ExpectedPods { pods: 5, healthy: 0 }, true),
            ("{}", ExpectedPods { pods: 0, healthy: 0 }, false),
        ];
        for (spec, want, by_scale) in rows {
            let budget = object(&format!(r#"{{"spec":{spec}}}"#));
            assert_eq!(expected(&budget, 3, 5), Ok(want), "{spec}");
            assert_eq!(needs_scale(&budget), by_scale, "{spec}");
        }
        assert!(expected(&object(r#"{"spec":{"minAvailable":"x"}}"#), 3, 5).is_err());
    }

    #[test]
    fn a_status_is_written_once_and_its_condition_shows_whether_disruptions_are_allowed() {
        let budget = object(r#"{"metadata":{"name":"b","generation":2}}"#);
        let three_pods = ExpectedPods { pods: 3, healthy: 3 };
        let no_evictions = BTreeMap::new();
        let written = with_status(&budget, three_pods, 3, &no_evictions, at(NOW)).unwrap();
        assert_eq!(written.at(&["status", "disruptionsAllowed"]).i64(), Some(0));
        let condition = condition::get(&written, DISRUPTION_ALLOWED).unwrap();
        assert_eq!((condition.reason.as_str(), condition.observed_generation), ("InsufficientPods", Some(2)));
        assert_eq!(with_status(&written, three_pods, 3, &no_evictions, at("2026-01-01T00:09:00Z")), None);
        let relaxed =
            with_status(&written, ExpectedPods { healthy: 1, ..three_pods }, 3, &no_evictions, at(NOW))
                .unwrap();
        assert_eq!(relaxed.at(&["status", "disruptionsAllowed"]).i64(), Some(2));
        assert_eq!(condition::get(&relaxed, DISRUPTION_ALLOWED).unwrap().reason, "SufficientPods");
        let unmatched =
            with_status(&relaxed, ExpectedPods { pods: 0, healthy: 0 }, 0, &no_evictions, at(NOW)).unwrap();
        assert_eq!(unmatched.at(&["status", "disruptionsAllowed"]).i64(), Some(0));
        let failed = with_failure(&relaxed, "because", at(NOW));
        assert_eq!(condition::get(&failed, DISRUPTION_ALLOWED).unwrap().message, "because");
    }

    #[test]
    fn granted_evictions_count_until_the_pod_is_deleted_or_they_expire() {
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
        let found = granted_evictions(&budget, &pods, at(NOW));
        assert_eq!(found.pods.keys().collect::<Vec<_>>(), ["soon"]);
        assert_eq!(found.recheck, Some(Duration::from_secs(90)));
        assert_eq!(found.overdue.iter().collect::<Vec<_>>(), ["late"]);
        assert_eq!(count_healthy(&pods, &found), 2);
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
        let updated = without_disruption_target(&pod(r#","reason":"x""#, "Running"), at(NOW));
        let condition = condition::get(&updated, DISRUPTION_TARGET).unwrap();
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", ""));
    }
}
