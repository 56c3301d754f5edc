//! The audit policy: an ordered list of rules, of which the first that matches a request decides.
//!
//! Upstream: `policyRuleEvaluator`. Without a matching rule nothing is recorded.

mod file;
mod matching;
#[cfg(test)]
mod tests;
mod validation;

pub use file::PolicyError;

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
    rules: Vec<Rule>,
    omit_stages: Stages,
    omit_managed_fields: bool,
    /// What is wrong with the file and does not matter: unknown fields. For a log.
    warnings: Vec<String>,
}

/// Requests, and what is recorded of them. An empty list matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    level: Level,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    non_resource_urls: Vec<String>,
    omit_stages: Stages,
    omit_managed_fields: Option<bool>,
}

/// Resources of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// [`PolicyError`], in upstream's words.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        file::parse(text)
    }

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
