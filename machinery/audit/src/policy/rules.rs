//! A checked policy, and what it says about a request.

use portico_machinery::{RequestInfo, UserInfo};

use crate::level::{Level, Stages};

/// What is recorded of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditConfig {
    /// How much.
    pub level: Level,
    /// Stages without an event.
    pub omit_stages: Stages,
    /// Whether objects are recorded without their managed fields.
    pub omit_managed_fields: bool,
}

/// A checked policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub(super) rules: Vec<Rule>,
    pub(super) omit_stages: Stages,
    pub(super) omit_managed_fields: bool,
    /// What is wrong with the file and does not matter: unknown fields. For a log.
    pub(super) warnings: Vec<String>,
}

/// Requests, and what is recorded of them. An empty list matches all.
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

/// Resources of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupResources {
    pub(super) group: String,
    pub(super) resources: Vec<String>,
    pub(super) resource_names: Vec<String>,
}

impl Policy {
    /// What is wrong with the file and was passed over.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What is recorded of a request; `user` is none where nobody was authenticated.
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
