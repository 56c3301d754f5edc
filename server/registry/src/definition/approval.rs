//! Approval of definitions in the Kubernetes project's groups (upstream's `KubernetesAPIApprovalPolicyConformantCondition`). It must not
//! know what follows: a refusal, a condition, or nothing.

use portico_gostd::url::Url;

/// The annotation of a protected group's definition that names who approved it.
pub const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

const LEARN_MORE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// Whether a group belongs to the Kubernetes project: its definitions need an approval.
#[must_use]
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// The content of the approval annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// A URL: approved there.
    Approved,
    /// `unapproved…`: not approved, and meant so.
    Bypassed,
    /// Nothing.
    Missing,
    /// Neither.
    Invalid,
}

impl Approval {
    /// Reads the annotation's value; an absent one is empty.
    #[must_use]
    pub fn of(annotation: &str) -> Self {
        match annotation {
            "" => Self::Missing,
            text if text.starts_with("unapproved") => Self::Bypassed,
            text if is_absolute_url(text) => Self::Approved,
            _ => Self::Invalid,
        }
    }

    /// Upstream's words for it, the same in refusals and conditions.
    #[must_use]
    pub fn message(self, annotation: &str) -> String {
        let must = format!("protected groups must have approval annotation {APPROVAL_ANNOTATION:?}");
        match self {
            Self::Approved => format!("approved in {annotation}"),
            Self::Bypassed => format!("not approved: {annotation:?}"),
            Self::Missing => format!("{must}, {LEARN_MORE}"),
            Self::Invalid => {
                format!("{must} with either a URL or a reason starting with \"unapproved\", {LEARN_MORE}")
            }
        }
    }
}

fn is_absolute_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| !url.scheme.is_empty() && !url.host().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_projects_domains_are_protected() {
        let protected = ["k8s.io", "kubernetes.io", "a.k8s.io", "a.b.kubernetes.io"];
        assert!(protected.iter().all(|group| is_protected(group)));
        assert!(
            !["ak8s.io", "k8s.io.example.com", "example.com", ""].iter().any(|group| is_protected(group))
        );
    }

    #[test]
    fn an_approval_is_a_url_or_an_owned_lack_of_one() {
        let rows = [
            ("", Approval::Missing),
            ("unapproved, testing", Approval::Bypassed),
            ("unapproved", Approval::Bypassed),
            ("https://github.com/kubernetes/kubernetes/pull/1", Approval::Approved),
            ("ftp://host?x", Approval::Approved),
            ("approved", Approval::Invalid),
            ("/pull/1", Approval::Invalid),
            ("https:/github.com", Approval::Invalid),
            ("https://", Approval::Invalid),
            ("://host", Approval::Invalid),
            (" https://host", Approval::Invalid),
        ];
        for (annotation, approval) in rows {
            assert_eq!(Approval::of(annotation), approval, "{annotation:?}");
        }
    }
}
