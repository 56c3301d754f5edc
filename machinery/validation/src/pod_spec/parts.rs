//! The parts of a pod spec that several rules look at.

use portico_machinery::field::Path;
use portico_machinery::{Cursor, Object};

/// Owner of a spec: some rules are for pods alone, some for templates.
#[derive(Clone, Copy)]
pub enum Of<'a> {
    /// A pod.
    Pod(&'a Object),
    /// A template of pods.
    Template,
}

/// All containers with the list that they are in: initContainers, containers, ephemeralContainers.
pub fn all_containers<'a>(spec: &Cursor<'a>) -> Vec<Cursor<'a>> {
    ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| spec.field(list).items().collect::<Vec<_>>())
        .collect()
}

/// Whether an init container keeps running beside the others.
pub fn is_sidecar(container: &Cursor<'_>) -> bool {
    container.field("restartPolicy").str() == "Always"
}

/// A path below another, each part a field.
pub(super) fn below(path: &Path, fields: &[&str]) -> Path {
    fields.iter().fold(path.clone(), |path, field| path.child(field))
}
