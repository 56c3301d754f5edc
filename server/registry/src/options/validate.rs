//! Validation of options: status 422 with all errors at once and upstream's
//! messages (`ValidateCreateOptions` etc., `ValidateListOptions`).

use std::num::IntErrorKind;

use portico_machinery::Status;
use portico_machinery::field::{self, ErrorType, Path};
use portico_machinery::gvk::GroupKind;

use crate::Result;

pub(super) const MANAGER_MAX: usize = 128;

/// Returns status 422 for the options kind if there are errors.
pub(super) fn check_errors(kind: &str, errors: &[field::Error]) -> Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let kind = GroupKind { group: "meta.k8s.io".to_owned(), kind: kind.to_owned() };
    Err(Box::new(Status::invalid(&kind, "", errors)))
}

/// Validates a field manager. Each error about a character contains the complete name, which may be as long as a request header;
/// if the name is too long, only the first invalid character is reported, as the errors would grow quadratically.
pub(super) fn field_manager(manager: &str, errors: &mut Vec<field::Error>) {
    let path = Path::from("fieldManager");
    let too_long = manager.len() > MANAGER_MAX;
    if too_long {
        errors.push(field::Error::too_long(&path, MANAGER_MAX));
    }
    let most = if too_long { 1 } else { MANAGER_MAX };
    for (index, c) in manager.char_indices().filter(|(_, c)| c.is_control()).take(most) {
        let text = format!("invalid character U+{:04X} (at position {index})", u32::from(c));
        errors.push(field::Error::invalid(&path, manager, &text));
    }
}

pub(super) fn dry_run(values: &[String], errors: &mut Vec<field::Error>) {
    if values.iter().any(|v| v != "All") {
        let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        let body = format!("Unsupported value: [{}]: supported values: \"All\"", values.join(","));
        errors.push(field::Error { kind: ErrorType::NotSupported, path: "dryRun".into(), body });
    }
}

/// Parses a number like `strconv.ParseUint`: without a sign.
fn unsigned(text: &str) -> std::result::Result<u64, String> {
    let digits = if text.starts_with('+') { "" } else { text };
    digits.parse().map_err(|error: std::num::ParseIntError| match text {
        "" => number_error("ParseUint", text, &IntErrorKind::Empty),
        text => number_error("ParseUint", text, error.kind()),
    })
}

/// Error of a Go `strconv` function that parses a number.
#[must_use]
pub fn number_error(function: &str, text: &str, kind: &IntErrorKind) -> String {
    let message = match kind {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {text:?}: {message}")
}

/// Options that determine the revision of a list or watch, as in the query.
pub(super) struct RawList<'q> {
    pub(super) version: &'q str,
    pub(super) version_match: &'q str,
    pub(super) continue_token: &'q str,
    pub(super) send_initial_events: Option<bool>,
}

impl RawList<'_> {
    /// Enables initial events for a watch without a specific revision.
    pub(super) fn default_watch(&mut self) {
        let has_no_revision = matches!(self.version, "" | "0");
        if has_no_revision && self.send_initial_events.is_none() && self.version_match.is_empty() {
            self.send_initial_events = Some(true);
            self.version_match = "NotOlderThan";
        }
    }

    pub(super) fn validate(&self, watch: bool) -> Result<()> {
        let mut errors = Vec::new();
        if watch {
            self.validate_watch(&mut errors)
        } else {
            self.validate_list(&mut errors)
        }
        check_errors("ListOptions", &errors)
    }

    fn validate_list(&self, errors: &mut Vec<field::Error>) {
        let path = Path::from("resourceVersionMatch");
        if !self.version_match.is_empty() {
            if self.version.is_empty() {
                let text = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(field::Error::forbidden(&path, text));
            }
            self.match_without_continue(&path, errors);
            if !matches!(self.version_match, "Exact" | "NotOlderThan") {
                let supported = ["Exact", "NotOlderThan", ""];
                errors.push(field::Error::not_supported(&path, self.version_match, &supported));
            }
            if self.version_match == "Exact" && self.version == "0" {
                let text = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(field::Error::forbidden(&path, text));
            }
        }
        if self.send_initial_events.is_some() {
            let text = "sendInitialEvents is forbidden for list";
            errors.push(field::Error::forbidden(&"sendInitialEvents".into(), text));
        }
    }

    fn validate_watch(&self, errors: &mut Vec<field::Error>) {
        let path = Path::from("resourceVersionMatch");
        if self.send_initial_events.is_some() && self.version_match != "NotOlderThan" {
            let text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(field::Error::forbidden(&path, text));
        }
        if self.version_match.is_empty() {
            return;
        }
        if self.send_initial_events.is_none() {
            let text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(field::Error::forbidden(&path, text));
        }
        if self.version_match != "NotOlderThan" {
            errors.push(field::Error::not_supported(&path, self.version_match, &["NotOlderThan"]));
        }
        self.match_without_continue(&path, errors);
    }

    fn match_without_continue(&self, path: &Path, errors: &mut Vec<field::Error>) {
        if !self.continue_token.is_empty() {
            let text = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(field::Error::forbidden(path, text));
        }
    }

    /// Revision of the options; status 400 if it is not a number, or is combined with a continue token.
    pub(super) fn parse_version(&self) -> Result<Option<i64>> {
        let version = match self.version {
            "" => None,
            // No store reaches revisions beyond i64.
            text => Some(unsigned(text).map(|version| i64::try_from(version).unwrap_or(i64::MAX)).map_err(
                |error| {
                    Status::bad_request(format!(
                        "invalid resource version: resourceVersion: Invalid value: {text:?}: {error}"
                    ))
                },
            )?),
        };
        if !self.continue_token.is_empty() && version.is_some_and(|v| v > 0) {
            return Err(Box::new(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            )));
        }
        Ok(version)
    }
}
