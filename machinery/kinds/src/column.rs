//! Columns of the Table form, and cells as far as data can say them.

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
            Self::Age { path } => Some(Cell::Age(at(object, path).opt_str().map(str::to_owned))),
            Self::Count { paths } => {
                let count: usize = paths.iter().map(|path| at(object, path).len()).sum();
                Some(Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
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
