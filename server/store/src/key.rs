//! What an object is found by: its storage resource and its path in it. Knows nothing of SQL or versions.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use portico_machinery::GroupResource;

/// A storage resource, shared: cloning it copies a pointer. Never a served version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource(Arc<GroupResource>);

impl Resource {
    /// The resource of this group (empty for core).
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self(Arc::new(GroupResource::new(group, resource)))
    }
}

impl From<GroupResource> for Resource {
    fn from(resource: GroupResource) -> Self {
        Self(Arc::new(resource))
    }
}

impl Deref for Resource {
    type Target = GroupResource;

    fn deref(&self) -> &GroupResource {
        &self.0
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An object's key: resource, namespace (empty for cluster-scoped), name. A resource is namespaced or cluster-scoped, never both.
///
/// Keys of one resource are ordered as upstream's storage keys are, that is, as the text `namespace/name`: objects of
/// `kube-system` come before those of `kube`. Cloning copies pointers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    resource: Resource,
    path: Arc<str>,
    /// Length of the namespace; 0 for cluster-scoped.
    namespace: u32,
}

impl Key {
    /// The key of an object; an empty namespace means cluster-scoped. Names must hold no `/` (registry checks them).
    pub fn new(resource: &Resource, namespace: &str, name: &str) -> Self {
        let path = if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() };
        // Namespaces are DNS labels; a length beyond u32 cannot be held in memory with its copy.
        Self {
            resource: resource.clone(),
            path,
            namespace: u32::try_from(namespace.len()).unwrap_or(u32::MAX),
        }
    }

    /// The storage resource.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The namespace, empty for cluster-scoped.
    pub fn namespace(&self) -> &str {
        &self.path[..self.namespace as usize]
    }

    /// The name.
    pub fn name(&self) -> &str {
        if self.namespace == 0 { &self.path } else { &self.path[self.namespace as usize + 1..] }
    }

    /// `namespace/name`, or the name alone when cluster-scoped: what orders keys and what continue tokens carry.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// The namespace (with its closing '/') and the name of a [`Key::path`], as databases keep them.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    path.split_at(path.find('/').map_or(0, |slash| slash + 1))
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.resource.cmp(&other.resource).then_with(|| self.path.cmp(&other.path))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.resource, self.path)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_resource_are_ordered_as_upstreams_storage_keys() {
        let pods = Resource::new("", "pods");
        let mut keys = [("kube", "a"), ("kube-system", "a"), ("b", "b"), ("b", "a.b"), ("b", "a")]
            .map(|(namespace, name)| Key::new(&pods, namespace, name));
        keys.sort();
        assert_eq!(keys.map(|key| key.path().to_owned()), ["b/a", "b/a.b", "b/b", "kube-system/a", "kube/a"]);
    }

    #[test]
    fn a_key_gives_back_its_parts() {
        let key = Key::new(&Resource::new("apps", "deployments"), "default", "web");
        assert_eq!((key.namespace(), key.name()), ("default", "web"));
        assert_eq!(key.to_string(), "deployments.apps/default/web");
        let node = Key::new(&Resource::new("", "nodes"), "", "n1");
        assert_eq!((node.namespace(), node.name(), node.path()), ("", "n1", "n1"));
    }
}
