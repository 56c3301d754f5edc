//! Keys of objects: storage resource and path. Independent of SQL and versions.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use portico_machinery::GroupResource;

/// Storage resource, never a served version. Cloning copies a pointer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource(Arc<GroupResource>);

impl Resource {
    /// Creates the resource of a group (empty for core).
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

/// Key of an object: resource, namespace (empty if cluster-scoped), and name. A resource is either namespaced or cluster-scoped.
///
/// Keys of one resource are ordered like upstream's storage keys, as the text `namespace/name`: objects of `kube-system` precede
/// those of `kube`. Cloning copies pointers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    resource: Resource,
    path: Arc<str>,
    /// Length of the namespace; 0 if cluster-scoped.
    namespace: u32,
}

impl Key {
    /// Creates the key of an object; an empty namespace means cluster-scoped. Names must not contain `/`
    /// (the registry checks this).
    pub fn new(resource: &Resource, namespace: &str, name: &str) -> Self {
        let path = if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() };
        // Namespaces are DNS labels, so the length fits into u32.
        Self {
            resource: resource.clone(),
            path,
            namespace: u32::try_from(namespace.len()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the storage resource.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Returns the namespace, empty if cluster-scoped.
    pub fn namespace(&self) -> &str {
        &self.path[..self.namespace as usize]
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        if self.namespace == 0 { &self.path } else { &self.path[self.namespace as usize + 1..] }
    }

    /// Returns `namespace/name`, or only the name if cluster-scoped. Keys are ordered by path, and continue tokens contain it.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Splits a [`Key::path`] into the namespace, with its trailing '/', and the name, as databases store them.
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
    fn keys_of_a_resource_are_ordered_like_storage_keys_of_upstream() {
        let pods = Resource::new("", "pods");
        let mut keys = [("kube", "a"), ("kube-system", "a"), ("b", "b"), ("b", "a.b"), ("b", "a")]
            .map(|(namespace, name)| Key::new(&pods, namespace, name));
        keys.sort();
        assert_eq!(keys.map(|key| key.path().to_owned()), ["b/a", "b/a.b", "b/b", "kube-system/a", "kube/a"]);
    }

    #[test]
    fn a_key_returns_its_parts() {
        let key = Key::new(&Resource::new("apps", "deployments"), "default", "web");
        assert_eq!((key.namespace(), key.name()), ("default", "web"));
        assert_eq!(key.to_string(), "deployments.apps/default/web");
        let node = Key::new(&Resource::new("", "nodes"), "", "n1");
        assert_eq!((node.namespace(), node.name(), node.path()), ("", "n1", "n1"));
    }
}
