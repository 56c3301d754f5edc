//! Options of create, update and patch.

/// Treatment of unknown fields and duplicate keys (upstream's `FieldValidation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drops them silently.
    Ignore,
    /// Drops them, with a warning for each.
    #[default]
    Warn,
    /// Refuses the object.
    Strict,
}

/// Options of create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Runs all steps except the write.
    pub dry_run: bool,
    /// Treatment of unknown and duplicate fields; ignored by the typed verbs, which take decoded objects.
    pub field_validation: FieldValidation,
    /// Field manager of the write.
    pub field_manager: String,
}

/// Options of update.
pub type UpdateOptions = CreateOptions;

/// Options of patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchOptions {
    /// Options shared with create.
    pub write: CreateOptions,
    /// Takes over fields of other managers; only for server-side apply.
    pub force: Option<bool>,
}
