//! Pod as checks receive it, and descriptions of violations.

use portico_machinery::Cursor;

/// Pod or pod template.
pub(super) struct Pod<'a> {
    /// `metadata`
    pub(super) metadata: Cursor<'a>,
    /// `spec`
    pub(super) spec: Cursor<'a>,
}

impl<'a> Pod<'a> {
    /// Creates a view of an object that has the metadata and spec of a pod.
    pub(super) fn of(object: Cursor<'a>) -> Self {
        Self { metadata: object.field("metadata"), spec: object.field("spec") }
    }

    /// Returns all containers, in upstream's order.
    pub(super) fn containers(&self) -> impl Iterator<Item = Cursor<'a>> + use<'a> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let lists: Vec<_> = lists.iter().flat_map(|list| self.spec.field(list).items()).collect();
        lists.into_iter()
    }

    /// True if the pod is for Windows, where many checks do not apply.
    pub(super) fn is_windows(&self) -> bool {
        self.spec.field("os").field("name").str() == "windows"
    }

    /// True if the pod has its own user namespace, so that root in the pod has no privileges on the host.
    pub(super) fn has_user_namespace(&self) -> bool {
        self.spec.field("hostUsers").opt_bool() == Some(false)
    }
}

/// Violation of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) reason: String,
    pub(super) detail: String,
}

impl Violation {
    pub(super) fn new(reason: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: detail.into() }
    }
}

/// Formats names as `"a", "b"`, after a noun in the singular or plural.
pub(super) fn describe_names(singular: &str, plural: &str, names: &[impl AsRef<str>]) -> String {
    let noun = if names.len() == 1 { singular } else { plural };
    format!("{noun} {}", quote_names(names))
}

/// Formats names as `"a", "b"`.
pub(super) fn quote_names(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| format!("\"{}\"", name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Formats names as `container "a"` or `containers "a", "b"`.
pub(super) fn describe_containers(names: &[impl AsRef<str>]) -> String {
    describe_names("container", "containers", names)
}
