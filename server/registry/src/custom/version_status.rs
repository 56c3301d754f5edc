//! Status of a version of a definition: served or not, with the deciding condition.

use portico_machinery::{GroupVersion, Object};

use super::definition_facts::DefinitionVersion;
use super::definitions::Definition;
use crate::condition;
use crate::definition::{ESTABLISHED, NAMES_ACCEPTED, TERMINATING};
use crate::registry::Registry;
use crate::stored_object;

/// Status of a version of a definition, and the condition that decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionStatus {
    /// Name of the definition.
    pub definition: String,
    /// True if requests in this version are served.
    pub is_served: bool,
    /// Reason of the deciding condition.
    pub reason: String,
    /// Message of the deciding condition.
    pub message: String,
    /// Time of the deciding condition in RFC 3339; empty if no condition has a time.
    pub since: String,
}

impl Registry {
    /// Statuses of this version in all definitions that have it, sorted by name of the definition.
    #[must_use]
    pub fn version_statuses(&self, group_version: &GroupVersion) -> Vec<VersionStatus> {
        let store = self.store();
        let mut version_statuses: Vec<VersionStatus> = self
            .definitions()
            .of_group(&**store, &group_version.group)
            .iter()
            .filter_map(|definition| {
                let versions = definition.facts.versions();
                let version = versions.iter().find(|version| version.name == group_version.version)?;
                Some(version_status(definition, version))
            })
            .collect();
        version_statuses.sort_by(|a, b| a.definition.cmp(&b.definition));
        version_statuses
    }
}

fn version_status(definition: &Definition, version: &DefinitionVersion) -> VersionStatus {
    let object = stored_object::decode(&definition.record);
    let is_served = version.served && definition.facts.is_reachable();
    let status = status_of_conditions(&object, version);
    VersionStatus { definition: definition.facts.name().to_owned(), is_served, ..status }
}

/// Status from the deciding condition: the first one that prevents serving, else the one that enables it.
fn status_of_conditions(object: &Object, version: &DefinitionVersion) -> VersionStatus {
    if !version.served {
        let message = format!("the definition does not serve version {}", version.name);
        return VersionStatus { reason: "NotServed".to_owned(), message, ..VersionStatus::default() };
    }
    let condition_with =
        |kind: &str, status: &str| condition::get(object, kind).filter(|c| c.status == status);
    let condition = condition_with(TERMINATING, "True")
        .or_else(|| condition_with(NAMES_ACCEPTED, "False"))
        .or_else(|| condition_with(ESTABLISHED, "False"))
        .or_else(|| condition_with(ESTABLISHED, "True"));
    match condition {
        Some(condition) => VersionStatus {
            reason: condition.reason,
            message: condition.message,
            since: condition.last_transition_time.unwrap_or_default(),
            ..VersionStatus::default()
        },
        None => VersionStatus {
            reason: "Pending".to_owned(),
            message: "the names have not been validated yet".to_owned(),
            ..VersionStatus::default()
        },
    }
}
