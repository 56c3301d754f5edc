//! What one object says, under a key, as it also travels to facades.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{BrokenLevel, FlowSchema, GROUP, PriorityLevel};
use crate::gvk::GroupResource;
use crate::object::Object;

/// One of the two kinds, by its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// `flowschemas`
    FlowSchemas,
    /// `prioritylevelconfigurations`
    PriorityLevels,
}

impl Resource {
    /// Both.
    pub const ALL: [Self; 2] = [Self::FlowSchemas, Self::PriorityLevels];

    /// The plural resource.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FlowSchemas => "flowschemas",
            Self::PriorityLevels => "prioritylevelconfigurations",
        }
    }

    /// Group and resource.
    #[must_use]
    pub fn group_resource(self) -> GroupResource {
        GroupResource::new(GROUP, self.name())
    }
}

/// Which object a fact was read off; printed `resource/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Its resource.
    pub resource: Resource,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.resource.name(), self.name)
    }
}

/// A text that is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not the key of a FlowSchema or PriorityLevelConfiguration", portico_gostd::strconv::quote(.0))]
pub struct KeyError(String);

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (resource, name) = text.split_once('/').unwrap_or_default();
        match Resource::ALL.into_iter().find(|r| r.name() == resource) {
            Some(resource) if !name.is_empty() => Ok(Self { resource, name: name.to_owned() }),
            _ => Err(KeyError(text.to_owned())),
        }
    }
}

/// What one object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Of a FlowSchema.
    Schema(Arc<FlowSchema>),
    /// Of a PriorityLevelConfiguration.
    Level(Arc<PriorityLevel>),
}

impl Fact {
    /// What an object of this resource says.
    ///
    /// # Errors
    /// [`BrokenLevel`] for a level of which upstream, too, pretends that it does not exist.
    pub fn read(resource: Resource, object: &Object) -> Result<Self, BrokenLevel> {
        Ok(match resource {
            Resource::FlowSchemas => Self::Schema(Arc::new(FlowSchema::read(object))),
            Resource::PriorityLevels => Self::Level(Arc::new(PriorityLevel::read(object)?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_being_printed() {
        for text in ["flowschemas/system-nodes", "prioritylevelconfigurations/exempt"] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        for text in ["", "flowschemas", "flowschemas/", "pods/p"] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }
}
