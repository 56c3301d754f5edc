//! What containers are validated with.

use portico_machinery::Cursor;

use super::volumes::Volumes;

/// What containers are validated with.
pub(super) struct Scene<'v, 'a> {
    /// The spec around them.
    pub(super) spec: Cursor<'a>,
    /// The volumes that they may mount.
    pub(super) volumes: &'v Volumes<'a>,
}
