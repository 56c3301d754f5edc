//! Parsed content of an object under a key, as sent to facades.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{FlowSchema, GROUP, InvalidPriorityLevel, PriorityLevel};
use crate::gvk::GroupResource;
use crate::object::Object;

/// Resource of one of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// `flowschemas`
    FlowSchemas,
    /// `prioritylevelconfigurations`
    PriorityLevels,
}

impl Resource {
    /// Both resources.
    pub const ALL: [Self; 2] = [Self::FlowSchemas, Self::PriorityLevels];

    /// Returns the plural resource name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FlowSchemas => "flowschemas",
            Self::PriorityLevels => "prioritylevelconfigurations",
        }
    }

    /// Returns group and resource.
    #[must_use]
    pub fn group_resource(self) -> GroupResource {
        GroupResource::new(GROUP, self.name())
    }
}

/// Identity of the object of a fact; printed as `resource/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Resource of the object.
    pub resource: Resource,
    /// Name of the object.
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.resource.name(), self.name)
    }
}

/// Text that is not a key.
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

/// Parsed content of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Content of a FlowSchema.
    Schema(Arc<FlowSchema>),
    /// Content of a PriorityLevelConfiguration.
    Level(Arc<PriorityLevel>),
}

impl Fact {
    /// Parses an object of this resource.
    ///
    /// # Errors
    /// [`InvalidPriorityLevel`] for a level that upstream ignores as well.
    pub fn read(resource: Resource, object: &Object) -> Result<Self, InvalidPriorityLevel> {
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
    fn keys_round_trip() {
        for text in ["flowschemas/system-nodes", "prioritylevelconfigurations/exempt"] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        for text in ["", "flowschemas", "flowschemas/", "pods/p"] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }
}
