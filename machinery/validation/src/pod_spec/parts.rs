//! Parts of a pod spec that several rules use.

use portico_machinery::field::Path;
use portico_machinery::{Cursor, Object};

/// Owner of a spec: some rules apply to pods only, some to templates only.
#[derive(Clone, Copy)]
pub enum SpecOwner<'a> {
    /// Pod with its complete object.
    Pod(&'a Object),
    /// Pod template.
    Template,
}

/// Returns all containers: `initContainers`, `containers`, `ephemeralContainers`.
pub fn all_containers<'a>(spec: &Cursor<'a>) -> Vec<Cursor<'a>> {
    ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| spec.field(list).items().collect::<Vec<_>>())
        .collect()
}

/// True if an init container keeps running alongside the regular containers.
pub fn is_sidecar(container: &Cursor<'_>) -> bool {
    container.field("restartPolicy").str() == "Always"
}

/// Appends fields to a path.
pub(super) fn child_path(path: &Path, fields: &[&str]) -> Path {
    fields.iter().fold(path.clone(), |path, field| path.child(field))
}
