//! Tables rendered by the server (`meta.k8s.io/v1`), converted for a terminal.

use serde::Deserialize;

use super::table::Table;

/// `Accept` header that requests a table.
pub(super) const ACCEPT: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Table of `meta.k8s.io/v1` in a response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServedTable {
    #[serde(default)]
    column_definitions: Vec<Column>,
    #[serde(default)]
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Column {
    name: String,
    #[serde(default)]
    priority: i32,
}

/// Row of a table, which shows one object.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    cells: Vec<Value>,
    #[serde(default)]
    object: Object,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
}

/// Value of a cell.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Integer(i64),
    Number(f64),
    Boolean(bool),
    Null(()),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Boolean(boolean) => boolean.to_string(),
            Self::Null(()) => String::new(),
        }
    }
}

/// Options of [`ServedTable::render`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TableOptions<'a> {
    /// True to include columns of lower priority.
    pub(super) wide: bool,
    /// True to begin with a column of namespaces.
    pub(super) namespaces: bool,
    /// Prefix of the objects' names, such as `deployment.apps/`.
    pub(super) prefix: &'a str,
}

impl ServedTable {
    /// Converts the table for a terminal.
    pub(super) fn render(&self, options: TableOptions<'_>) -> Table {
        let columns: Vec<usize> = (0..self.column_definitions.len())
            .filter(|at| options.wide || self.column_definitions[*at].priority == 0)
            .collect();
        let namespace = options.namespaces.then_some("namespace");
        let names = columns.iter().map(|at| self.column_definitions[*at].name.as_str());
        let headers: Vec<&str> = namespace.into_iter().chain(names).collect();
        let mut table = Table::new(&headers);
        table.rows = self.rows.iter().map(|row| row.render(&columns, options)).collect();
        table
    }
}

impl Row {
    fn render(&self, columns: &[usize], options: TableOptions<'_>) -> Vec<super::table::Cell> {
        let namespace = options.namespaces.then(|| self.object.metadata.namespace.clone());
        let text = |at: &usize| {
            let text = self.cells.get(*at).map(Value::text).unwrap_or_default();
            let is_name = *at == 0 && text == self.object.metadata.name;
            if is_name { format!("{}{text}", options.prefix) } else { text }
        };
        namespace.into_iter().chain(columns.iter().map(text)).map(Into::into).collect()
    }

    /// Returns the name of the object.
    pub(super) fn name(&self) -> &str {
        &self.object.metadata.name
    }
}
