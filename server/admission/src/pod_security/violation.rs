//! A pod as checks see it, and how they describe what they find.

use portico_machinery::Cursor;

/// A pod or a template of pods.
pub(super) struct Pod<'a> {
    /// `metadata`
    pub(super) metadata: Cursor<'a>,
    /// `spec`
    pub(super) spec: Cursor<'a>,
}

impl<'a> Pod<'a> {
    /// What has a pod's metadata and spec.
    pub(super) fn of(at: Cursor<'a>) -> Self {
        Self { metadata: at.field("metadata"), spec: at.field("spec") }
    }

    /// All containers, in upstream's order.
    pub(super) fn containers(&self) -> impl Iterator<Item = Cursor<'a>> + use<'a> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let lists: Vec<_> = lists.iter().flat_map(|list| self.spec.field(list).items()).collect();
        lists.into_iter()
    }

    /// Whether it is for Windows, where much does not apply.
    pub(super) fn is_windows(&self) -> bool {
        self.spec.field("os").field("name").str() == "windows"
    }

    /// Whether root inside is nobody outside.
    pub(super) fn has_own_users(&self) -> bool {
        self.spec.field("hostUsers").opt_bool() == Some(false)
    }
}

/// What a check finds wrong.
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

/// `"a", "b"`, with one word for one and another for several.
pub(super) fn named(one: &str, several: &str, names: &[impl AsRef<str>]) -> String {
    let word = if names.len() == 1 { one } else { several };
    format!("{word} {}", quoted(names))
}

/// `"a", "b"`
pub(super) fn quoted(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| format!("\"{}\"", name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// `container "a"`, `containers "a", "b"`
pub(super) fn containers_named(names: &[impl AsRef<str>]) -> String {
    named("container", "containers", names)
}
