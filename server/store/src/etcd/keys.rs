//! Conversion between keys of objects and keys of etcd.

use std::sync::Arc;

use super::layout::Layout;
use crate::key::{Key, Resource, split_path};

/// Mapping of objects to keys of etcd.
#[derive(Clone)]
pub(super) struct EtcdKeys {
    /// Prefix, with a slash at both ends.
    root: String,
    layout: Arc<dyn Layout>,
}

/// Range of keys with an exclusive end.
pub(super) type KeyRange = (Vec<u8>, Vec<u8>);

impl EtcdKeys {
    pub(super) fn new(root: String, layout: Arc<dyn Layout>) -> Self {
        Self { root, layout }
    }

    /// Returns the range of all objects.
    pub(super) fn all(&self) -> KeyRange {
        prefix_range(&self.root)
    }

    /// Returns the etcd key of an object.
    pub(super) fn object_key(&self, key: &Key) -> String {
        format!("{}{}", self.resource_prefix(key.resource()), key.path())
    }

    /// Returns the common prefix of the keys of a resource.
    pub(super) fn resource_prefix(&self, resource: &Resource) -> String {
        format!("{}{}/", self.root, self.layout.path(resource))
    }

    /// Returns the range of the objects of a resource, in one namespace or all, after a path.
    pub(super) fn range(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        after: Option<&str>,
    ) -> KeyRange {
        let base = self.resource_prefix(resource);
        let (mut start, end) = match namespace {
            Some(namespace) => prefix_range(&format!("{base}{namespace}/")),
            None => prefix_range(&base),
        };
        if let Some(after) = after {
            start = start.max(format!("{base}{after}\0").into_bytes());
        }
        (start, end)
    }

    /// Returns the object of an etcd key; `None` if the key is not of an object.
    pub(super) fn parse(&self, key: &[u8]) -> Option<Key> {
        let path = std::str::from_utf8(key).ok()?.strip_prefix(&*self.root)?;
        let (resource, object_path) = self.layout.locate(path)?;
        let (namespace, name) = split_path(object_path);
        if name.is_empty() || name.contains('/') {
            return None;
        }
        Some(Key::new(&resource, namespace.trim_end_matches('/'), name))
    }

    /// Returns the first key after those of the resource of this key, or after its folder if it is not of an object.
    pub(super) fn after_resource(&self, key: &[u8]) -> Vec<u8> {
        if let Some(object) = self.parse(key) {
            return prefix_range(&self.resource_prefix(object.resource())).1;
        }
        let text = String::from_utf8_lossy(key);
        let path = text.strip_prefix(&*self.root).unwrap_or_default();
        let mut parts = path.splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(first), Some(second), Some(_)) => {
                prefix_range(&format!("{}{first}/{second}/", self.root)).1
            }
            _ => [key, b"\0"].concat(),
        }
    }
}

/// Returns the range of all keys that begin with a text, which ends with a slash.
fn prefix_range(text: &str) -> KeyRange {
    let mut end = text.as_bytes().to_vec();
    // '0' follows '/'.
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    (text.as_bytes().to_vec(), end)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use portico_machinery::GroupResource;

    use super::*;

    struct TestLayout;

    impl Layout for TestLayout {
        fn path(&self, resource: &GroupResource) -> String {
            if resource.resource == "services" {
                "services/specs".to_owned()
            } else {
                resource.resource.clone()
            }
        }

        fn locate<'p>(&self, path: &'p str) -> Option<(Resource, &'p str)> {
            let services = path
                .strip_prefix("services/specs/")
                .map(|object_path| (Resource::new("", "services"), object_path));
            services.or_else(|| {
                path.strip_prefix("nodes/").map(|object_path| (Resource::new("", "nodes"), object_path))
            })
        }

        fn to_stored(&self, _: &GroupResource, json: &[u8]) -> Result<Vec<u8>, String> {
            Ok(json.to_vec())
        }

        fn to_json(&self, _: &GroupResource, stored: &[u8]) -> Result<Vec<u8>, String> {
            Ok(stored.to_vec())
        }

        fn time_to_live(&self, _: &GroupResource) -> Option<Duration> {
            None
        }
    }

    #[test]
    fn keys_round_trip_and_other_keys_are_skipped_by_folder() {
        let keys = EtcdKeys::new("/registry/".to_owned(), Arc::new(TestLayout));
        let dns = Key::new(&Resource::new("", "services"), "kube-system", "dns");
        assert_eq!(keys.object_key(&dns), "/registry/services/specs/kube-system/dns");
        assert_eq!(keys.parse(b"/registry/services/specs/kube-system/dns"), Some(dns));
        let node = Key::new(&Resource::new("", "nodes"), "", "n1");
        assert_eq!(keys.parse(keys.object_key(&node).as_bytes()), Some(node));
        for foreign in
            ["/registry/ranges/serviceips", "/other/nodes/n1", "/registry/nodes/a/b/c", "/registry/nodes/"]
        {
            assert_eq!(keys.parse(foreign.as_bytes()), None, "{foreign}");
        }
        assert_eq!(keys.after_resource(b"/registry/nodes/n1"), b"/registry/nodes0");
        assert_eq!(keys.after_resource(b"/registry/a/b/c"), b"/registry/a/b0");
        assert_eq!(keys.after_resource(b"/registry/a/b"), b"/registry/a/b\0");
    }
}
