//! Whether a definition serves a version, and why it does not: what its conditions say.

use portico_machinery::{GroupVersion, Object};

use super::definitions::Definition;
use super::facts::Version;
use crate::condition;
use crate::definition::{ESTABLISHED, NAMES_ACCEPTED, TERMINATING};
use crate::registry::Registry;
use crate::stored;

/// How a definition stands to one of its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The definition's name.
    pub definition: String,
    /// Whether requests in this version find its objects.
    pub serves: bool,
    /// The reason of the condition that decides.
    pub reason: String,
    /// Its message.
    pub message: String,
    /// RFC 3339: since when that is so; empty when nobody says.
    pub since: String,
}

impl Registry {
    /// How the definitions stand that have this version, by name.
    #[must_use]
    pub fn standings(&self, group_version: &GroupVersion) -> Vec<Standing> {
        let store = self.store();
        let mut standings: Vec<Standing> = self
            .definitions()
            .of_group(&**store, &group_version.group)
            .iter()
            .filter_map(|definition| {
                let versions = definition.facts.versions();
                let version = versions.iter().find(|version| version.name == group_version.version)?;
                Some(standing(definition, version))
            })
            .collect();
        standings.sort_by(|a, b| a.definition.cmp(&b.definition));
        standings
    }
}

fn standing(definition: &Definition, version: &Version) -> Standing {
    let object = stored::decode(&definition.record);
    let serves = version.served && definition.facts.is_reachable();
    let reported = reported(&object, version);
    Standing { definition: definition.facts.name().to_owned(), serves, ..reported }
}

/// The condition that decides: the first that keeps something from being served, else the one that lets it be.
fn reported(object: &Object, version: &Version) -> Standing {
    if !version.served {
        let message = format!("the definition does not serve version {}", version.name);
        return Standing { reason: "NotServed".to_owned(), message, ..Standing::default() };
    }
    let is = |kind: &str, status: &str| condition::get(object, kind).filter(|c| c.status == status);
    let deciding = is(TERMINATING, "True")
        .or_else(|| is(NAMES_ACCEPTED, "False"))
        .or_else(|| is(ESTABLISHED, "False"))
        .or_else(|| is(ESTABLISHED, "True"));
    match deciding {
        Some(condition) => Standing {
            reason: condition.reason,
            message: condition.message,
            since: condition.last_transition_time.unwrap_or_default(),
            ..Standing::default()
        },
        None => Standing {
            reason: "Pending".to_owned(),
            message: "nobody has validated its names yet".to_owned(),
            ..Standing::default()
        },
    }
}
