//! Columns of the Table form, and cells as far as data can say them.

use portico_machinery::selector::{labels_cell, selector_cell};
use portico_machinery::table::{Cell, Column};
use portico_machinery::{Cursor, Object};

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
    /// A function of this name, which the registry supplies.
    Function {
        /// Its name.
        name: String,
    },
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
