//! Option validation: 422 on an options kind, all errors at once, upstream's texts (`ValidateCreateOptions` and its like, `ValidateListOptions`).

use std::num::IntErrorKind;

use portico_machinery::Status;
use portico_machinery::field::{self, ErrorType, Path};
use portico_machinery::gvk::GroupKind;

use crate::Result;

pub(super) const MANAGER_MAX: usize = 128;

/// 422 on the options kind when there is something to refuse.
pub(super) fn refuse(kind: &str, errors: &[field::Error]) -> Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let kind = GroupKind { group: "meta.k8s.io".to_owned(), kind: kind.to_owned() };
    Err(Box::new(Status::invalid(&kind, "", errors)))
}

/// Each error about a character shows the whole name. So of a name that is too long, which may be as long as a request's head, only
/// the first wrong character is reported: the errors would otherwise grow with the square of its length.
pub(super) fn field_manager(manager: &str, errors: &mut Vec<field::Error>) {
    let path = Path::from("fieldManager");
    let too_long = manager.len() > MANAGER_MAX;
    if too_long {
        errors.push(field::Error::too_long(&path, MANAGER_MAX));
    }
    let most = if too_long { 1 } else { MANAGER_MAX };
    for (at, c) in manager.char_indices().filter(|(_, c)| c.is_control()).take(most) {
        let text = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
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

/// A number as `strconv.ParseUint` reads it: without a sign.
fn unsigned(text: &str) -> std::result::Result<u64, String> {
    let digits = if text.starts_with('+') { "" } else { text };
    digits.parse().map_err(|error: std::num::ParseIntError| match text {
        "" => number_error("ParseUint", text, &IntErrorKind::Empty),
        text => number_error("ParseUint", text, error.kind()),
    })
}

/// The error of a function of Go's `strconv` that reads a number.
#[must_use]
pub fn number_error(function: &str, text: &str, kind: &IntErrorKind) -> String {
    let why = match kind {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {text:?}: {why}")
}

/// What decides from where a list or watch reads, as the query has it.
pub(super) struct RawList<'q> {
    pub(super) version: &'q str,
    pub(super) version_match: &'q str,
    pub(super) continue_token: &'q str,
    pub(super) send_initial_events: Option<bool>,
}

impl RawList<'_> {
    /// A watch from nowhere in particular begins with what is there.
    pub(super) fn default_watch(&mut self) {
        let anywhere = matches!(self.version, "" | "0");
        if anywhere && self.send_initial_events.is_none() && self.version_match.is_empty() {
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
        refuse("ListOptions", &errors)
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

    /// The revision; 400 when it is no number, or comes with a continue token.
    pub(super) fn parse_version(&self) -> Result<Option<i64>> {
        let version = match self.version {
            "" => None,
            // No store reaches the revisions that only an unsigned number holds.
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
