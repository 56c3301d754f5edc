//! Table cells and texts for the states of routes and stages.

use anstyle::{AnsiColor, Style};
use portico_proto::routes::{RouteSummary, Stage};

use super::table::Cell;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WAITING: Style = AnsiColor::Yellow.on_default();

/// Returns the cell of a state: green if good, otherwise red.
pub(super) fn state_cell(text: &str, is_good: bool) -> Cell {
    Cell { text: text.to_owned(), style: if is_good { GOOD } else { BAD } }
}

/// Returns the yellow cell of a state that is not known yet.
pub(super) fn pending_state_cell(text: &str) -> Cell {
    Cell { text: text.to_owned(), style: WAITING }
}

/// Returns the cell for the availability of a route.
pub(super) fn availability_cell(route: &RouteSummary) -> Cell {
    state_cell(if route.available { "Available" } else { "Unavailable" }, route.available)
}

/// Returns reason and message of a stage, joined by a colon.
pub(super) fn reason_and_message(stage: &Stage) -> String {
    let parts = [&*stage.reason, &*stage.message];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}
