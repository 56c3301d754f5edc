//! Table: the columns and cells that kubectl prints. Cells stay typed; ages are rendered when asked for.

use jiff::Timestamp;
use serde::Serialize;

use crate::object::to_go_json;
use crate::time;

/// A column as it stands in `columnDefinitions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `date`, `boolean` or `number`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `name`, `date`, or empty.
    pub format: String,
    /// For people.
    pub description: String,
    /// 0 is always shown, more is for wide output.
    pub priority: i32,
}

/// A cell before it is rendered.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing: JSON null.
    Null,
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number that may have a fraction.
    Number(f64),
    /// A truth value.
    Bool(bool),
    /// The age of something created then; rendered as a duration at the time of the request.
    Age(Option<String>),
    /// Text and how long ago something happened: `3 (65m ago)`.
    Ago {
        /// The text in front.
        text: String,
        /// When it happened.
        at: String,
    },
}

impl Cell {
    /// Text from anything that is text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Writes the cell as JSON, ages against `now`.
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
