//! Calculations on a PodDisruptionBudget: permission for an eviction, and the resulting status.

use portico_machinery::status::{Cause, Reason};
use portico_machinery::{GroupResource, Object, Status};

use portico_registry::Result;

/// Maximum number of `disruptedPods` of a budget (upstream's `MaxDisruptedPodSize`).
const DISRUPTED_MAX: usize = 2000;

fn number(budget: &Object, field: &str) -> i64 {
    budget.at(&["status", field]).i64().unwrap_or(0)
}

/// True if a pod that is not ready can be evicted without a charge.
pub(super) fn allows_unready(budget: &Object) -> bool {
    let desired = number(budget, "desiredHealthy");
    budget.str_at("spec.unhealthyPodEvictionPolicy") == "AlwaysAllow"
        || (number(budget, "currentHealthy") >= desired && desired > 0)
}

/// Subtracts one allowed disruption from a budget, or returns the reason for the refusal.
pub(super) fn charge(budget: &mut Object, pod: &str, now: &str) -> Result<()> {
    let name = budget.name().to_owned();
    if number(budget, "observedGeneration") < budget.generation() {
        return Err(Box::new(in_progress(&name)));
    }
    let allowed = number(budget, "disruptionsAllowed");
    let forbidden = |message: &str| {
        let resource = GroupResource::new("policy", "poddisruptionbudgets");
        Err(Box::new(Status::forbidden(&resource, &name, message)))
    };
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if budget.at(&["status", "disruptedPods"]).len() > DISRUPTED_MAX {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed == 0 {
        return Err(Box::new(too_many(refusal_cause(budget))));
    }
    budget.set(&["status", "disruptionsAllowed"], allowed - 1);
    if allowed == 1 {
        set_exhausted(budget, now);
    }
    budget.set(&["status", "disruptedPods", pod], now);
    Ok(())
}

/// Error 429 for a budget whose controller has not yet processed its current state. The client should retry.
pub(super) fn in_progress(name: &str) -> Status {
    let text = format!("The disruption budget {name} is still being processed by the server.");
    too_many(text).with_retry_after(10)
}

/// Error 429 with a cause from the budget.
fn too_many(cause: String) -> Status {
    let text = "Cannot evict pod as it would violate the pod's disruption budget.";
    Status::failure(Reason::TooManyRequests, text).with_cause(Cause {
        reason: "DisruptionBudget".to_owned(),
        message: cause,
        field: String::new(),
    })
}

fn refusal_cause(budget: &Object) -> String {
    let name = budget.name();
    let (current, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    let condition =
        portico_registry::condition::get(budget, "DisruptionAllowed").filter(|c| c.status == "False");
    match condition {
        Some(condition) if condition.reason == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            condition.message
        ),
        _ if current <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        }
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            condition.reason, condition.message
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Sets the condition `DisruptionAllowed` to `False` after the last allowed disruption was used.
fn set_exhausted(budget: &mut Object, now: &str) {
    let generation = budget.at(&["status", "observedGeneration"]).i64().unwrap_or(0);
    let write = |condition: &mut Object| {
        if condition.str_at("status") != "False" {
            condition.set(&["lastTransitionTime"], now);
        }
        condition.set(&["status"], "False");
        condition.set(&["reason"], "InsufficientPods");
        condition.set(&["message"], "");
        condition.set(&["observedGeneration"], generation);
    };
    let mut found = false;
    budget.edit_each(&["status", "conditions"], |condition| {
        if condition.str_at("type") == "DisruptionAllowed" {
            found = true;
            write(condition);
        }
    });
    if !found {
        let mut condition = Object::default();
        condition.set(&["type"], "DisruptionAllowed");
        write(&mut condition);
        budget.push_node(&["status", "conditions"], condition.into_node());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(status: &str) -> Object {
        let json = format!(r#"{{"metadata":{{"name":"b","generation":1}},"status":{status}}}"#);
        Object::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn charging_a_budget_subtracts_a_disruption_and_records_the_pod() {
        let now = "2026-01-01T00:00:00Z";
        let mut rich = budget(r#"{"observedGeneration":1,"disruptionsAllowed":1}"#);
        charge(&mut rich, "p", now).unwrap();
        assert_eq!(rich.at(&["status", "disruptionsAllowed"]).i64(), Some(0));
        assert_eq!(rich.at(&["status", "disruptedPods"]).entry_str("p"), Some(now));
        let refused = charge(&mut rich, "q", now).unwrap_err();
        assert_eq!((refused.code, refused.retry_after_seconds()), (429, 0));
        let unseen = charge(&mut budget("{}"), "p", now).unwrap_err();
        assert_eq!((unseen.code, unseen.retry_after_seconds()), (429, 10));
    }
}
