//! What a check of a definition finds.

use portico_machinery::Status;

use crate::Result;
use crate::typed::Written;

/// Stored objects that `crds check` names.
///
/// Limit (Definitions and schemas): the rest is counted.
pub const MAX_OBJECTS: u64 = 100;

/// What is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// The definition is refused.
    Error,
    /// It is accepted with a warning.
    Warning,
    /// It breaks what the installed definition allows.
    Breaking,
    /// A stored object would no longer be valid.
    Invalid,
    /// A stored object would lose a field.
    Lost,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// The version of the definition, empty where it is about all of it.
    pub version: String,
    /// `namespace/name` or the name of a stored object, empty where it is about the definition.
    pub object: String,
    /// The field, as errors print it; empty for the whole.
    pub field: String,
    /// What is wrong.
    pub text: String,
}

/// What came out of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The definition's name.
    pub name: String,
    /// Whether a definition of this name is installed.
    pub installed: bool,
    /// What was found; of stored objects at most [`MAX_OBJECTS`] are named.
    pub findings: Vec<Finding>,
    /// How many stored objects were looked at.
    pub objects: u64,
    /// How many of them would be invalid or lose something.
    pub hit: u64,
}

impl Finding {
    pub(super) fn of(kind: FindingKind, field: &str, text: String) -> Self {
        Self { kind, version: String::new(), object: String::new(), field: field.to_owned(), text }
    }
}

impl Checked {
    pub(super) fn take(&mut self, written: Result<Written>) {
        match written {
            Ok(written) => {
                let warn = |text| Finding::of(FindingKind::Warning, "", text);
                self.findings.extend(written.warnings.into_iter().map(warn));
            }
            Err(status) => self.findings.extend(refusals(&status)),
        }
    }
}

/// The causes of a refusal, or all of it.
fn refusals(status: &Status) -> Vec<Finding> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let of_cause = |field: &str, text: &str| Finding::of(FindingKind::Error, field, text.to_owned());
    let found: Vec<Finding> = causes.map(|cause| of_cause(&cause.field, &cause.message)).collect();
    if found.is_empty() { vec![of_cause("", &status.message)] } else { found }
}
