//! Table columns of a version.

use portico_kinds::{CellRule, ColumnRule, ColumnType};
use portico_machinery::JsonPath;
use portico_machinery::table::Column;

use super::PrinterColumn;

/// Columns of a version: the name, then the columns of the definition, or the age if there are none. A column with an invalid
/// path and all columns after it are omitted.
pub(super) fn column_rules(columns: &[PrinterColumn]) -> Vec<ColumnRule> {
    let path = ["metadata", "name"].map(str::to_owned).into();
    let name = ColumnRule {
        column: Column {
            name: "Name".to_owned(),
            kind: "string".to_owned(),
            format: "name".to_owned(),
            description: "The name, unique among the objects of its kind in a namespace.".to_owned(),
            priority: 0,
        },
        cell: CellRule::Path { path, absent: String::new() },
    };
    if columns.is_empty() {
        return std::iter::once(name).chain(column_rule(&age())).collect();
    }
    std::iter::once(name).chain(columns.iter().map_while(column_rule)).collect()
}

/// Default column of versions without columns.
fn age() -> PrinterColumn {
    PrinterColumn {
        name: "Age".to_owned(),
        kind: "date".to_owned(),
        description: "When the object was created, by the clock of the server.".to_owned(),
        json_path: ".metadata.creationTimestamp".to_owned(),
        ..PrinterColumn::default()
    }
}

fn column_rule(column: &PrinterColumn) -> Option<ColumnRule> {
    let path = match JsonPath::parse(&column.json_path) {
        Ok(path) => path,
        Err(error) => {
            let (column, path) = (&column.name, &column.json_path);
            tracing::warn!(
                column,
                path,
                %error,
                "printer column has an invalid path, remaining columns skipped"
            );
            return None;
        }
    };
    let description = match column.description.as_str() {
        "" => format!("Custom resource definition column (in JSONPath format): {}", column.json_path),
        given => given.to_owned(),
    };
    let column_type = ColumnType::from_name(&column.kind)?;
    let column = Column {
        name: column.name.clone(),
        kind: column.kind.clone(),
        format: column.format.clone(),
        description,
        priority: column.priority,
    };
    Some(ColumnRule { column, cell: CellRule::JsonPath { path, column_type } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, path: &str) -> PrinterColumn {
        let (name, kind, json_path) = (name.to_owned(), "string".to_owned(), path.to_owned());
        PrinterColumn { name, kind, json_path, ..PrinterColumn::default() }
    }

    fn names(columns: &[PrinterColumn]) -> Vec<String> {
        column_rules(columns).into_iter().map(|rule| rule.column.name).collect()
    }

    #[test]
    fn a_column_with_an_invalid_path_removes_all_later_columns() {
        assert_eq!(names(&[]), ["Name", "Age"]);
        assert_eq!(names(&[column("A", ".a"), column("B", ".b[x]"), column("C", ".c")]), ["Name", "A"]);
        assert_eq!(names(&[column("A", ".a[")]), ["Name"]);
    }

    #[test]
    fn a_column_without_a_description_is_described_by_its_path() {
        let described = column_rules(&[column("A", ".a")]).pop().unwrap().column.description;
        assert!(described.ends_with(": .a"), "{described}");
    }
}
