//! Table: columns and rows as kubectl prints them. Cached cells keep their types and are formatted per request, as ages change.

use std::sync::Arc;

use portico_kinds::CellRule;
use portico_machinery::accept::{Form, MetaVersion};
use portico_machinery::table::{Cell, Column};
use portico_store::Record;

use super::{CachedForm, FormKey, FormKind, Include, Renderer};
use crate::stored_object;

impl Renderer<'_> {
    fn table_version(&self) -> MetaVersion {
        match self.form {
            Form::Table(version) => version,
            _ => MetaVersion::V1,
        }
    }

    /// Document up to the opening bracket of the rows.
    pub(super) fn table_head(&self, metadata: &[u8], columns: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(b"{\"kind\":\"Table\",\"apiVersion\":\"");
        out.extend_from_slice(self.table_version().api_version().as_bytes());
        out.extend_from_slice(b"\",\"metadata\":");
        out.extend_from_slice(metadata);
        out.extend_from_slice(b",\"columnDefinitions\":");
        if columns {
            let headed = |column: &&Column| !column.name.is_empty();
            let columns: Vec<&Column> =
                self.served_resource.info.columns.iter().map(|c| &c.column).filter(headed).collect();
            // Plain structs always serialize.
            out.extend_from_slice(&serde_json::to_vec(&columns).unwrap_or_default());
        } else {
            out.extend_from_slice(b"null");
        }
        out.extend_from_slice(b",\"rows\":[");
        out
    }

    /// Table with one row; events of a watch after the first omit the columns.
    pub(crate) fn table_of_one(&self, record: &Record, columns: bool) -> Vec<u8> {
        let version = match record.revision {
            // A bookmark contains its revision; the result of a dry run has none.
            0 => stored_object::decode(record).resource_version().to_owned(),
            revision => revision.to_string(),
        };
        let metadata = match version.as_str() {
            "" => "{}".to_owned(),
            version => format!("{{\"resourceVersion\":\"{version}\"}}"),
        };
        let mut out = self.table_head(metadata.as_bytes(), columns);
        self.write_row(record, &mut out);
        out.extend_from_slice(b"]}");
        out
    }

    pub(super) fn write_row(&self, record: &Record, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"cells\":[");
        for (index, cell) in self.cells(record).iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            cell.render(self.now, out);
        }
        out.push(b']');
        let field = |name: &str| record.value.field(name).unwrap_or_default().to_owned();
        if let Some((reason, message)) = self.served_resource.strategies.table.completion(&field) {
            let condition = format!(
                ",\"conditions\":[{{\"type\":\"Completed\",\"status\":\"True\",\"reason\":\"{reason}\",\"message\":\"{message}\"}}]"
            );
            out.extend_from_slice(condition.as_bytes());
        }
        out.extend_from_slice(b",\"object\":");
        match self.include {
            Include::None => out.extend_from_slice(b"null"),
            Include::Metadata => out.extend_from_slice(&self.metadata(record, self.table_version())),
            Include::Object => self.write_json(record, out),
        }
        out.push(b'}');
    }

    fn cells(&self, record: &Record) -> Arc<[Cell]> {
        let Some(cache) = self.cache_for(record) else { return self.compute_cells(record) };
        let key = FormKey::new(record, self.served_resource.id, FormKind::Cells);
        match cache.get_or_make(key, || CachedForm::Cells(self.compute_cells(record))) {
            CachedForm::Cells(cells) => cells,
            CachedForm::Bytes(_) | CachedForm::Frame(_) | CachedForm::Record(_) => self.compute_cells(record),
        }
    }

    fn compute_cells(&self, record: &Record) -> Arc<[Cell]> {
        let object = stored_object::decode(record);
        let columns = self.served_resource.info.columns.iter();
        columns
            .map(|column| match &column.cell {
                CellRule::Function { name } => self.served_resource.strategies.table.cell(name, &object),
                // All other cells are defined by data.
                rule => rule.cell(&object).unwrap_or(Cell::Null),
            })
            .collect()
    }
}
