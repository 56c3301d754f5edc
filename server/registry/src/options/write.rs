//! Options of create, update and patch.

/// What happens to fields that the kind does not know and to duplicate keys (upstream's `FieldValidation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Dropped silently.
    Ignore,
    /// Dropped, with a warning each.
    #[default]
    Warn,
    /// Refused.
    Strict,
}

/// Options of create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Everything but the write.
    pub dry_run: bool,
    /// Unknown and duplicate fields; the typed verbs take decoded objects and do not look at it.
    pub field_validation: FieldValidation,
    /// Who writes; kept for managed fields.
    pub field_manager: String,
}

/// Options of update.
pub type UpdateOptions = CreateOptions;

/// Options of patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchOptions {
    /// As for create.
    pub write: CreateOptions,
    /// Take fields from other managers: server-side apply only.
    pub force: Option<bool>,
}
