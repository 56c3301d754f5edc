//! Approval of definitions in the Kubernetes project's groups (upstream's `KubernetesAPIApprovalPolicyConformantCondition`).
//! Independent of the consequence of a missing approval.

use portico_gostd::url::Url;

/// Annotation with the URL of the approval, required for definitions in protected groups.
pub const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

const LEARN_MORE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// True if a group belongs to the Kubernetes project, so that its definitions need an approval.
#[must_use]
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// Content of the approval annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// URL of the approval.
    Approved,
    /// `unapproved…`: intentionally not approved.
    Bypassed,
    /// The annotation is empty or absent.
    Missing,
    /// The content is neither a URL nor `unapproved…`.
    Invalid,
}

impl Approval {
    /// Parses the annotation's value; empty if it is absent.
    #[must_use]
    pub fn parse(annotation: &str) -> Self {
        match annotation {
            "" => Self::Missing,
            text if text.starts_with("unapproved") => Self::Bypassed,
            text if is_absolute_url(text) => Self::Approved,
            _ => Self::Invalid,
        }
    }

    /// Upstream's message, used in refusals and conditions.
    #[must_use]
    pub fn message(self, annotation: &str) -> String {
        let requirement = format!("protected groups must have approval annotation {APPROVAL_ANNOTATION:?}");
        match self {
            Self::Approved => format!("approved in {annotation}"),
            Self::Bypassed => format!("not approved: {annotation:?}"),
            Self::Missing => format!("{requirement}, {LEARN_MORE}"),
            Self::Invalid => {
                format!(
                    "{requirement} with either a URL or a reason starting with \"unapproved\", {LEARN_MORE}"
                )
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
    fn an_approval_is_a_url_or_an_explicit_bypass() {
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
            assert_eq!(Approval::parse(annotation), approval, "{annotation:?}");
        }
    }
}
