//! Columns of the Table form, and cells as far as data can say them.

use portico_gostd::time::{Layout, Time};
use portico_machinery::object::json_path::Found;
use portico_machinery::selector::{labels_cell, selector_cell};
use portico_machinery::table::{Cell, Column};
use portico_machinery::{Cursor, JsonPath, Object};

/// A column and where its cells come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnRule {
    /// The column as clients see it.
    pub column: Column,
    /// Where its cells come from.
    pub cell: CellRule,
}

/// Where a cell comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellRule {
    /// The value at this path: text, number or truth value; an absent one prints as `absent`, or as empty text.
    Path {
        /// Field names.
        path: Vec<String>,
        /// What stands for an absent value; empty text when not given.
        absent: String,
    },
    /// The number at this path, 0 when there is none.
    Number {
        /// Field names.
        path: Vec<String>,
    },
    /// The age of the time at this path.
    Age {
        /// Field names.
        path: Vec<String>,
    },
    /// The added sizes of the lists or maps at these paths.
    Count {
        /// Field names, one path each.
        paths: Vec<Vec<String>>,
    },
    /// A field of each element of a list, joined by commas.
    Joined {
        /// Field names of the list.
        list: Vec<String>,
        /// The field of each element.
        field: String,
    },
    /// The labels at this path, as a selector of exactly them prints; `<none>` when there are none.
    Labels {
        /// Field names.
        path: Vec<String>,
    },
    /// The label selector at this path as text; `<none>` when it is empty or absent.
    Selector {
        /// Field names.
        path: Vec<String>,
    },
    /// What a path finds first, as the column of a definition shows it; null where it finds nothing or something of
    /// another type.
    JsonPath {
        /// Where to look.
        path: JsonPath,
        /// How it shows.
        shown: Shown,
    },
    /// A function of this name, which the registry supplies.
    Function {
        /// Its name.
        name: String,
    },
}

/// How a column of a definition shows what it finds: its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Anything, printed.
    Text,
    /// Numbers without their fraction.
    Integer,
    /// Numbers.
    Number,
    /// Truth values.
    Truth,
    /// How long ago the time in a text was.
    Date,
}

impl Shown {
    /// By the name of a type; nothing for others than definitions may have.
    #[must_use]
    pub fn of_type(name: &str) -> Option<Self> {
        match name {
            "string" => Some(Self::Text),
            "integer" => Some(Self::Integer),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Truth),
            "date" => Some(Self::Date),
            _ => None,
        }
    }

    fn cell(self, found: Found<'_>) -> Cell {
        let cell = match self {
            Self::Text => Some(Cell::Text(found.printed())),
            Self::Integer => found.integer().map(Cell::Integer),
            Self::Number => found.number().map(Cell::Number),
            Self::Truth => found.truth().map(Cell::Bool),
            Self::Date => found.text().map(date),
        };
        cell.unwrap_or(Cell::Null)
    }
}

/// The age of a time: upstream's zero time has none, and what is no time is shown as invalid.
fn date(text: &str) -> Cell {
    match text {
        "" | "null" | "0001-01-01T00:00:00Z" => Cell::Age(None),
        text if Time::parse(Layout::Rfc3339, text).is_ok() => Cell::Age(Some(text.to_owned())),
        _ => Cell::text("<invalid>"),
    }
}

impl CellRule {
    /// The cell, or nothing for [`CellRule::Function`].
    #[must_use]
    pub fn cell(&self, object: &Object) -> Option<Cell> {
        match self {
            Self::Path { path, absent } => Some(plain(&at(object, path), absent)),
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
            Self::JsonPath { path, shown } => {
                Some(path.first(object).map_or(Cell::Null, |found| shown.cell(found)))
            }
            Self::Function { .. } => None,
        }
    }
}

fn at<'a>(object: &'a Object, path: &'a [String]) -> Cursor<'a> {
    path.iter().fold(object.cursor(), |cursor, field| cursor.field(field))
}

fn plain(cursor: &Cursor<'_>, absent: &str) -> Cell {
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
        let rule =
            CellRule::JsonPath { path: JsonPath::parse(path).unwrap(), shown: Shown::of_type(kind).unwrap() };
        rule.cell(&object).unwrap()
    }

    #[test]
    fn columns_of_definitions_show_what_has_their_type() {
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
