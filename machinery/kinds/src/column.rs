//! Columns of the Table form, and cells that data can describe.

use portico_gostd::time::{Layout, Time};
use portico_machinery::object::json_path::JsonPathValue;
use portico_machinery::selector::{labels_cell, selector_cell};
use portico_machinery::table::{Cell, Column};
use portico_machinery::{Cursor, JsonPath, Object};

/// Column with the source of its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnRule {
    /// Definition of the column for clients.
    pub column: Column,
    /// Source of the cells.
    pub cell: CellRule,
}

/// Source of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellRule {
    /// Scalar value at a path.
    Path {
        /// Field names.
        path: Vec<String>,
        /// Text for an absent value.
        absent: String,
    },
    /// Number at a path; 0 if absent.
    Number {
        /// Field names.
        path: Vec<String>,
    },
    /// Age of the time at a path.
    Age {
        /// Field names.
        path: Vec<String>,
    },
    /// Sum of the sizes of the lists or maps at several paths.
    Count {
        /// Paths, each a list of field names.
        paths: Vec<Vec<String>>,
    },
    /// Field of each element of a list, joined by commas.
    Joined {
        /// Field names of the list.
        list: Vec<String>,
        /// Name of the field of each element.
        field: String,
    },
    /// Labels at a path, formatted as a selector; `<none>` if there are none.
    Labels {
        /// Field names.
        path: Vec<String>,
    },
    /// Label selector at a path, formatted as text; `<none>` if it is empty or absent.
    Selector {
        /// Field names.
        path: Vec<String>,
    },
    /// First value at a JSONPath, for columns of custom resource definitions; null if the value is absent or has another
    /// type.
    JsonPath {
        /// JSONPath of the value.
        path: JsonPath,
        /// Type of the column.
        column_type: ColumnType,
    },
    /// Result of a function that the registry supplies.
    Function {
        /// Name of the function.
        name: String,
    },
}

/// Type of a column in a custom resource definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Any value, printed as text.
    Text,
    /// Number without its fraction.
    Integer,
    /// Number with its fraction.
    Number,
    /// Boolean value.
    Boolean,
    /// Age of a time.
    Date,
}

impl ColumnType {
    /// Returns the column type with this name, or `None` if definitions cannot use the name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "string" => Some(Self::Text),
            "integer" => Some(Self::Integer),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Boolean),
            "date" => Some(Self::Date),
            _ => None,
        }
    }

    fn cell(self, value: JsonPathValue<'_>) -> Cell {
        let cell = match self {
            Self::Text => Some(Cell::Text(value.printed())),
            Self::Integer => value.integer().map(Cell::Integer),
            Self::Number => value.number().map(Cell::Number),
            Self::Boolean => value.truth().map(Cell::Bool),
            Self::Date => value.text().map(date_cell),
        };
        cell.unwrap_or(Cell::Null)
    }
}

/// Returns the age of a time. The zero time of upstream has no age, and an invalid time prints as `<invalid>`.
fn date_cell(text: &str) -> Cell {
    match text {
        "" | "null" | "0001-01-01T00:00:00Z" => Cell::Age(None),
        text if Time::parse(Layout::Rfc3339, text).is_ok() => Cell::Age(Some(text.to_owned())),
        _ => Cell::text("<invalid>"),
    }
}

impl CellRule {
    /// Returns the cell, or `None` for [`CellRule::Function`].
    #[must_use]
    pub fn cell(&self, object: &Object) -> Option<Cell> {
        match self {
            Self::Path { path, absent } => Some(scalar_cell(&at(object, path), absent)),
            Self::Number { path } => Some(Cell::Integer(at(object, path).i64().unwrap_or(0))),
            Self::Age { path } => Some(Cell::Age(at(object, path).opt_str().map(str::to_owned))),
            Self::Count { paths } => {
                let count: usize = paths.iter().map(|path| at(object, path).len()).sum();
                Some(Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
            }
            Self::Joined { list, field } => {
                let words: Vec<&str> = at(object, list).items().map(|i| i.field(field).str()).collect();
                Some(Cell::text(words.join(",")))
            }
            Self::Labels { path } => Some(Cell::text(labels_cell(&at(object, path)))),
            Self::Selector { path } => Some(Cell::text(selector_cell(&at(object, path)))),
            Self::JsonPath { path, column_type } => {
                Some(path.first(object).map_or(Cell::Null, |value| column_type.cell(value)))
            }
            Self::Function { .. } => None,
        }
    }
}

fn at<'a>(object: &'a Object, path: &'a [String]) -> Cursor<'a> {
    path.iter().fold(object.cursor(), |cursor, field| cursor.field(field))
}

fn scalar_cell(cursor: &Cursor<'_>, absent: &str) -> Cell {
    if let Some(text) = cursor.opt_str().filter(|text| !text.is_empty()) {
        return Cell::text(text);
    }
    match (cursor.i64(), cursor.opt_bool()) {
        (Some(number), _) => Cell::Integer(number),
        (None, Some(truth)) => Cell::Bool(truth),
        (None, None) => Cell::text(absent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(path: &str, kind: &str) -> Cell {
        let json = br#"{"a":"red","n":3,"f":2.9,"e":3000000000.0,"t":true,"null":null,"when":"2001-01-01T00:00:00Z","zero":"0001-01-01T00:00:00Z"}"#;
        let object = Object::from_json(json).unwrap();
        let rule = CellRule::JsonPath {
            path: JsonPath::parse(path).unwrap(),
            column_type: ColumnType::from_name(kind).unwrap(),
        };
        rule.cell(&object).unwrap()
    }

    #[test]
    fn columns_of_definitions_print_values_of_their_type() {
        let rows = [
            (".a", "string", Cell::text("red")),
            (".n", "string", Cell::text("3")),
            (".t", "string", Cell::text("true")),
            (".null", "string", Cell::text("<no value>")),
            (".none", "string", Cell::Null),
            (".n", "integer", Cell::Integer(3)),
            (".f", "integer", Cell::Integer(2)),
            (".e", "integer", Cell::Integer(3_000_000_000)),
            (".a", "integer", Cell::Null),
            (".null", "integer", Cell::Null),
            ("7", "integer", Cell::Null),
            (".n", "number", Cell::Number(3.0)),
            (".f", "number", Cell::Number(2.9)),
            (".t", "number", Cell::Null),
            (".t", "boolean", Cell::Bool(true)),
            (".a", "boolean", Cell::Null),
            (".when", "date", Cell::Age(Some("2001-01-01T00:00:00Z".to_owned()))),
            (".zero", "date", Cell::Age(None)),
            (".a", "date", Cell::text("<invalid>")),
            (".n", "date", Cell::Null),
        ];
        for (path, kind, want) in rows {
            assert_eq!(cell(path, kind), want, "{path} as {kind}");
        }
    }

    #[test]
    fn numbers_are_written_without_an_empty_fraction() {
        let written = |n: f64| {
            let mut out = Vec::new();
            Cell::Number(n).render(portico_machinery::time::parse("2026-01-01T00:00:00Z").unwrap(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!([2.0, 1.5, -0.25].map(written), ["2", "1.5", "-0.25"]);
    }
}
