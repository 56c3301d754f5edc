//! Approval of definitions in protected groups of the Kubernetes project (condition
//! KubernetesAPIApprovalPolicyConformant). The condition has no further effect.

use portico_registry::condition::Condition;
use portico_registry::definition::Approval;

use super::condition_types::APPROVED;
use super::definition::Definition;

/// Returns the condition to write; `None` for groups that need no approval, or if the condition is up to date.
#[must_use]
pub fn decide(definition: &Definition) -> Option<Condition> {
    let annotation = definition.approval.as_deref()?;
    let approval = Approval::parse(annotation);
    let (status, reason) = match approval {
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
    };
    let reported = Condition::new(APPROVED, status, reason, approval.message(annotation));
    (!definition.has_condition(&reported)).then_some(reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_is_reported_for_protected_groups_only_and_once() {
        let mut definition = Definition::default();
        assert_eq!(decide(&definition), None);
        definition.approval = Some("unapproved, testing only".into());
        let reported = decide(&definition).unwrap();
        assert_eq!((reported.status.as_str(), reported.reason.as_str()), ("False", "UnapprovedAnnotation"));
        assert_eq!(reported.message, "not approved: \"unapproved, testing only\"");
        definition.conditions.push(reported);
        assert_eq!(decide(&definition), None);
        definition.approval = Some("https://example.com/1".into());
        assert_eq!(decide(&definition).unwrap().message, "approved in https://example.com/1");
    }
}
