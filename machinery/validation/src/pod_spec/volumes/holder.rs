//! Objects that hold volume sources.

/// Object that holds a volume source. Some sources have more fields in a persistent volume.
#[derive(Clone, Copy)]
pub enum Holder<'a> {
    /// A pod, or a template of one.
    Pod,
    /// A persistent volume of this name.
    PersistentVolume(&'a str),
}
