//! Findings of a check of a definition.

use portico_machinery::Status;

use crate::Result;
use crate::verb_types::WriteResult;

/// Stored objects that `crds check` names.
///
/// Limit (Definitions and schemas): the rest is counted.
pub const MAX_OBJECTS: u64 = 100;

/// Category of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// The definition is refused.
    Error,
    /// The definition is accepted with a warning.
    Warning,
    /// The definition breaks clients or objects that the installed definition allows.
    Breaking,
    /// A stored object would no longer be valid.
    Invalid,
    /// A stored object would lose a field.
    Lost,
}

/// Finding about a definition or a stored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Category of the finding.
    pub kind: FindingKind,
    /// Version of the definition; empty if the finding is about the complete definition.
    pub version: String,
    /// `namespace/name` or name of a stored object; empty if the finding is about the definition.
    pub object: String,
    /// Path of the field, as in errors; empty for the complete object.
    pub field: String,
    /// Description of the problem.
    pub text: String,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Name of the definition.
    pub name: String,
    /// True if a definition with this name is installed.
    pub installed: bool,
    /// All findings; those of stored objects for at most [`MAX_OBJECTS`] objects.
    pub findings: Vec<Finding>,
    /// Number of checked objects.
    pub objects: u64,
    /// Number of checked objects with findings.
    pub affected_objects: u64,
}

impl Finding {
    pub(super) fn new(kind: FindingKind, field: &str, text: String) -> Self {
        Self { kind, version: String::new(), object: String::new(), field: field.to_owned(), text }
    }
}

impl CheckReport {
    pub(super) fn add_dry_run(&mut self, result: Result<WriteResult>) {
        match result {
            Ok(written) => {
                let warning = |text| Finding::new(FindingKind::Warning, "", text);
                self.findings.extend(written.warnings.into_iter().map(warning));
            }
            Err(status) => self.findings.extend(refusals(&status)),
        }
    }
}

/// Causes of a refusal; if it has none, its message.
fn refusals(status: &Status) -> Vec<Finding> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let error_finding = |field: &str, text: &str| Finding::new(FindingKind::Error, field, text.to_owned());
    let findings: Vec<Finding> = causes.map(|cause| error_finding(&cause.field, &cause.message)).collect();
    if findings.is_empty() { vec![error_finding("", &status.message)] } else { findings }
}
