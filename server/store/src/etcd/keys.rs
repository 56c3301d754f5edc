//! Conversion between keys of objects and keys of etcd.

use std::sync::Arc;

use super::layout::Layout;
use crate::key::{Key, Resource, split_path};

/// Mapping of objects to keys of etcd.
#[derive(Clone)]
pub(super) struct Keys {
    /// Prefix, with a slash at both ends.
    root: String,
    layout: Arc<dyn Layout>,
}

/// Range of keys with an exclusive end.
pub(super) type KeyRange = (Vec<u8>, Vec<u8>);

impl Keys {
    pub(super) fn new(root: String, layout: Arc<dyn Layout>) -> Self {
        Self { root, layout }
    }

    /// Returns the range of all objects.
    pub(super) fn all(&self) -> KeyRange {
        below(&self.root)
    }

    /// Returns the etcd key of an object.
    pub(super) fn of(&self, key: &Key) -> String {
        format!("{}{}", self.base(key.resource()), key.path())
    }

    /// Returns the common prefix of the keys of a resource.
    pub(super) fn base(&self, resource: &Resource) -> String {
        format!("{}{}/", self.root, self.layout.path(resource))
    }

    /// Returns the range of the objects of a resource, in one namespace or all, after a path.
    pub(super) fn range(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        after: Option<&str>,
    ) -> KeyRange {
        let base = self.base(resource);
        let (mut from, until) = match namespace {
            Some(namespace) => below(&format!("{base}{namespace}/")),
            None => below(&base),
        };
        if let Some(after) = after {
            from = from.max(format!("{base}{after}\0").into_bytes());
        }
        (from, until)
    }

    /// Returns the object of an etcd key; `None` if the key is not of an object.
    pub(super) fn parse(&self, key: &[u8]) -> Option<Key> {
        let path = std::str::from_utf8(key).ok()?.strip_prefix(&*self.root)?;
        let (resource, rest) = self.layout.locate(path)?;
        let (namespace, name) = split_path(rest);
        if name.is_empty() || name.contains('/') {
            return None;
        }
        Some(Key::new(&resource, namespace.trim_end_matches('/'), name))
    }

    /// Returns the first key after those of the resource of this key, or after its folder if it is not of an object.
    pub(super) fn beyond(&self, key: &[u8]) -> Vec<u8> {
        if let Some(object) = self.parse(key) {
            return below(&self.base(object.resource())).1;
        }
        let text = String::from_utf8_lossy(key);
        let path = text.strip_prefix(&*self.root).unwrap_or_default();
        let mut parts = path.splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(first), Some(second), Some(_)) => below(&format!("{}{first}/{second}/", self.root)).1,
            _ => [key, b"\0"].concat(),
        }
    }
}

/// Returns the range of all keys that begin with a text, which ends with a slash.
fn below(text: &str) -> KeyRange {
    let mut until = text.as_bytes().to_vec();
    // '0' follows '/'.
    if let Some(last) = until.last_mut() {
        *last += 1;
    }
    (text.as_bytes().to_vec(), until)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use portico_machinery::GroupResource;

    use super::*;

    struct Two;

    impl Layout for Two {
        fn path(&self, resource: &GroupResource) -> String {
            if resource.resource == "services" {
                "services/specs".to_owned()
            } else {
                resource.resource.clone()
            }
        }

        fn locate<'p>(&self, path: &'p str) -> Option<(Resource, &'p str)> {
            let services =
                path.strip_prefix("services/specs/").map(|rest| (Resource::new("", "services"), rest));
            services.or_else(|| path.strip_prefix("nodes/").map(|rest| (Resource::new("", "nodes"), rest)))
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
    fn keys_come_back_and_what_is_no_object_is_passed_over_by_folder() {
        let keys = Keys::new("/registry/".to_owned(), Arc::new(Two));
        let dns = Key::new(&Resource::new("", "services"), "kube-system", "dns");
        assert_eq!(keys.of(&dns), "/registry/services/specs/kube-system/dns");
        assert_eq!(keys.parse(b"/registry/services/specs/kube-system/dns"), Some(dns));
        let node = Key::new(&Resource::new("", "nodes"), "", "n1");
        assert_eq!(keys.parse(keys.of(&node).as_bytes()), Some(node));
        for foreign in
            ["/registry/ranges/serviceips", "/other/nodes/n1", "/registry/nodes/a/b/c", "/registry/nodes/"]
        {
            assert_eq!(keys.parse(foreign.as_bytes()), None, "{foreign}");
        }
        assert_eq!(keys.beyond(b"/registry/nodes/n1"), b"/registry/nodes0");
        assert_eq!(keys.beyond(b"/registry/a/b/c"), b"/registry/a/b0");
        assert_eq!(keys.beyond(b"/registry/a/b"), b"/registry/a/b\0");
    }
}
