//! Validated policy, and its evaluation for a request.

use portico_machinery::{RequestInfo, UserInfo};

use crate::level::{Level, Stages};

/// Audit configuration of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditConfig {
    /// Amount of recorded data.
    pub level: Level,
    /// Stages that generate no event.
    pub omit_stages: Stages,
    /// True to record objects without their managed fields.
    pub omit_managed_fields: bool,
}

/// Validated audit policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub(super) rules: Vec<Rule>,
    pub(super) omit_stages: Stages,
    pub(super) omit_managed_fields: bool,
    /// Messages about unknown fields of the file, to be logged.
    pub(super) warnings: Vec<String>,
}

/// Requests to match, and their audit configuration. An empty list matches all requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) level: Level,
    pub(super) users: Vec<String>,
    pub(super) user_groups: Vec<String>,
    pub(super) verbs: Vec<String>,
    pub(super) resources: Vec<GroupResources>,
    pub(super) namespaces: Vec<String>,
    pub(super) non_resource_urls: Vec<String>,
    pub(super) omit_stages: Stages,
    pub(super) omit_managed_fields: Option<bool>,
}

/// Resources of one API group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupResources {
    pub(super) group: String,
    pub(super) resources: Vec<String>,
    pub(super) resource_names: Vec<String>,
}

impl Policy {
    /// Returns messages about ignored parts of the file: unknown fields.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the audit configuration of a request; `user` is `None` if the request was not authenticated.
    #[must_use]
    pub fn evaluate(&self, user: Option<&UserInfo>, request: &RequestInfo) -> AuditConfig {
        let rule = self.rules.iter().find(|rule| rule.matches(user, request));
        AuditConfig {
            level: rule.map_or(Level::None, |rule| rule.level),
            omit_stages: rule.map_or(self.omit_stages, |rule| rule.omit_stages.union(self.omit_stages)),
            omit_managed_fields: rule
                .and_then(|rule| rule.omit_managed_fields)
                .unwrap_or(self.omit_managed_fields),
        }
    }
}
