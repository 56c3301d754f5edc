//! Context of the validation of containers.

use portico_machinery::Cursor;

use super::volumes::ValidVolumes;

/// Context of the validation of containers.
pub(super) struct ContainerContext<'v, 'a> {
    /// Spec of the pod.
    pub(super) spec: Cursor<'a>,
    /// Volumes that containers may mount.
    pub(super) volumes: &'v ValidVolumes<'a>,
}
