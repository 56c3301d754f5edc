//! Groups, versions, kinds and resources of the API.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// API group and one of its versions. The legacy core group is the empty string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupVersion {
    /// Group, empty for core.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
}

impl GroupVersion {
    /// Creates a group version.
    pub fn new(group: impl Into<String>, version: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into() }
    }

    /// True for the legacy core group.
    #[must_use]
    pub fn is_core(&self) -> bool {
        self.group.is_empty()
    }

    /// Returns the root path of the resources: `/api/v1` or `/apis/G/V`.
    #[must_use]
    pub fn root(&self) -> String {
        if self.is_core() { format!("/api/{}", self.version) } else { format!("/apis/{self}") }
    }

    /// Returns the name of the APIService of this group version: `<version>.<group>`, `v1.` for core.
    #[must_use]
    pub fn api_service_name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }

    /// Returns the kind of this name in this group version.
    pub fn kind(&self, kind: impl Into<String>) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: self.version.clone(), kind: kind.into() }
    }

    /// Returns the resource of this name in this group version.
    pub fn resource(&self, resource: impl Into<String>) -> GroupVersionResource {
        GroupVersionResource {
            group: self.group.clone(),
            version: self.version.clone(),
            resource: resource.into(),
        }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_core() { f.write_str(&self.version) } else { write!(f, "{}/{}", self.group, self.version) }
    }
}

/// Error for an `apiVersion` with more than one slash, or with an empty half.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected GroupVersion string: {0}")]
pub struct InvalidGroupVersion(pub String);

impl FromStr for GroupVersion {
    type Err = InvalidGroupVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            None => Ok(Self::new("", text)),
            Some((_, version)) if version.contains('/') => Err(InvalidGroupVersion(text.to_owned())),
            Some((group, version)) => Ok(Self::new(group, version)),
        }
    }
}

/// Kind in a group, without a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupKind {
    /// Group, empty for core.
    pub group: String,
    /// Kind, such as `APIService`.
    pub kind: String,
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_dotted(f, &self.kind, &self.group)
    }
}

/// Kind in a group version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// Group, empty for core.
    pub group: String,
    /// Version of the group.
    pub version: String,
    /// Name of the kind.
    pub kind: String,
}

impl GroupVersionKind {
    /// Returns the group version.
    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    /// Returns the group and kind.
    #[must_use]
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }
}

/// Resource in a group, without a version: the unit of storage and of authorization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupResource {
    /// Group, empty for core.
    pub group: String,
    /// Plural resource, such as `apiservices`.
    pub resource: String,
}

impl GroupResource {
    /// Creates a group resource.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_dotted(f, &self.resource, &self.group)
    }
}

/// Resource in a group version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupVersionResource {
    /// Group, empty for core.
    pub group: String,
    /// Version of the group.
    pub version: String,
    /// Plural resource name.
    pub resource: String,
}

impl GroupVersionResource {
    /// Creates a resource in a group version.
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// Returns the group version.
    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    /// Returns the group and resource.
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.resource)
    }
}

/// Writes `name.group`, or `name` in the core group: upstream's short form in messages.
fn write_dotted(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() { f.write_str(name) } else { write!(f, "{name}.{group}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_versions_parse_and_print_as_upstream() {
        for (text, group, version) in [("v1", "", "v1"), ("apps/v1", "apps", "v1"), ("", "", "")] {
            let gv: GroupVersion = text.parse().unwrap();
            assert_eq!((gv.group.as_str(), gv.version.as_str()), (group, version));
            assert_eq!(gv.to_string(), text);
        }
        assert!("a/b/c".parse::<GroupVersion>().is_err());
    }

    #[test]
    fn roots_and_api_service_names_follow_the_group() {
        assert_eq!(GroupVersion::new("", "v1").root(), "/api/v1");
        assert_eq!(GroupVersion::new("apps", "v1").root(), "/apis/apps/v1");
        assert_eq!(GroupVersion::new("", "v1").api_service_name(), "v1.");
        assert_eq!(GroupResource::new("apps", "deployments").to_string(), "deployments.apps");
        assert_eq!(GroupResource::new("", "pods").to_string(), "pods");
    }
}
