//! Table: columns and cells that kubectl prints. Cells are typed; ages are rendered when the response is encoded.

use jiff::Timestamp;
use serde::Serialize;

use crate::object::to_go_json;
use crate::time;

/// Column in `columnDefinitions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Heading of the column.
    pub name: String,
    /// `string`, `integer`, `date`, `boolean` or `number`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `name`, `date`, or empty.
    pub format: String,
    /// Human-readable description.
    pub description: String,
    /// Priority: 0 is always printed, higher values only in wide output.
    pub priority: i32,
}

/// Cell before it is rendered.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Empty cell: JSON null.
    Null,
    /// Text cell.
    Text(String),
    /// Integer cell.
    Integer(i64),
    /// Number that may have a fraction.
    Number(f64),
    /// Boolean cell.
    Bool(bool),
    /// Age of an object with this creation time, rendered as a duration at the time of the request.
    Age(Option<String>),
    /// Text and the time since an event: `3 (65m ago)`.
    Ago {
        /// Text before the age.
        text: String,
        /// Time of the event.
        at: String,
    },
}

impl Cell {
    /// Creates a text cell.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Writes the cell as JSON, with ages relative to `now`.
    pub fn render(&self, now: Timestamp, out: &mut Vec<u8>) {
        let json = match self {
            Self::Null => to_go_json(&()),
            Self::Text(text) => to_go_json(text),
            Self::Integer(n) => to_go_json(n),
            Self::Number(n) => to_go_json(n),
            Self::Bool(b) => to_go_json(b),
            Self::Ago { text, at } => to_go_json(&format!("{text} ({} ago)", time::age(Some(at), now))),
            Self::Age(created) => to_go_json(&time::age(created.as_deref(), now)),
        };
        out.extend_from_slice(&json);
    }
}
