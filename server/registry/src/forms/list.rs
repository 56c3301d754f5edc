//! Lists: one document in pieces, so that a long list is never in memory as a whole.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use portico_machinery::accept::{Choice, Encoding, Form};
use portico_store::Record;

use super::piece_writer::{PIECE_BYTES, PieceWriter, body};
use super::{Include, Renderer, protobuf};
use crate::Result;
use crate::answer::Body;
use crate::list::Page;
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::stored_object;

/// Metadata of a list. With `always_has_token`, as for custom resources, an empty token is also written.
pub(super) fn metadata(page: &Page, always_has_token: bool) -> Vec<u8> {
    if page.revision == 0 {
        return b"{}".to_vec();
    }
    let mut out = format!("{{\"resourceVersion\":\"{}\"", page.revision);
    if always_has_token || !page.continue_token.is_empty() {
        // The token's alphabet needs no escapes.
        out.push_str(",\"continue\":\"");
        out.push_str(&page.continue_token);
        out.push('"');
    }
    if let Some(remaining) = page.remaining {
        out.push_str(&format!(",\"remainingItemCount\":{remaining}"));
    }
    out.push('}');
    out.into_bytes()
}

pub(super) fn head(kind: &str, api_version: &str, page: &Page, always_has_token: bool) -> Vec<u8> {
    let mut out =
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":").into_bytes();
    out.extend_from_slice(&metadata(page, always_has_token));
    out.extend_from_slice(b",\"items\":[");
    out
}

impl Renderer<'_> {
    /// Document before the first element of a list.
    fn list_head(&self, page: &Page) -> Vec<u8> {
        match self.form {
            Form::Table(_) => self.table_head(&metadata(page, false), true),
            Form::Metadata(version) | Form::MetadataList(version) => {
                head("PartialObjectMetadataList", version.api_version(), page, false)
            }
            Form::Object => {
                let always_has_token = self.served_resource.custom.is_some();
                head(
                    &self.served_resource.info.list_kind,
                    &self.served_resource.api_version,
                    page,
                    always_has_token,
                )
            }
        }
    }

    /// Writes one element of a list.
    fn item(&self, record: &Record, out: &mut Vec<u8>) {
        match self.form {
            Form::Table(_) => self.write_row(record, out),
            Form::Metadata(version) | Form::MetadataList(version) => {
                out.extend_from_slice(&self.metadata(record, version));
            }
            Form::Object => self.write_item(record, out),
        }
    }
}

/// State of writing a JSON list.
struct JsonListWriter {
    objects: Arc<Objects>,
    served_resource: Arc<ServedResource>,
    form: Form,
    include: Include,
    now: Timestamp,
    records: std::vec::IntoIter<Arc<Record>>,
    first: bool,
    head: Vec<u8>,
    done: bool,
}

impl JsonListWriter {
    /// Writes the end of the document. Tables of kinds without a printer in upstream have null instead of an empty list of rows.
    fn end(&self, out: &mut Vec<u8>) {
        let is_table = matches!(self.form, Form::Table(_));
        if is_table
            && self.first
            && self.served_resource.info.has_default_columns()
            && out.pop() == Some(b'[')
        {
            out.extend_from_slice(b"null}\n");
        } else {
            out.extend_from_slice(b"]}\n");
        }
    }

    fn renderer(&self) -> Renderer<'_> {
        Renderer {
            cache: Some(&self.objects.forms),
            served_resource: &self.served_resource,
            form: self.form,
            encoding: Encoding::Json,
            include: self.include,
            now: self.now,
        }
    }

    fn next_piece(&mut self) -> Bytes {
        let mut out = std::mem::take(&mut self.head);
        if out.is_empty() {
            out.reserve(PIECE_BYTES + PIECE_BYTES / 8);
        }
        while out.len() < PIECE_BYTES {
            let Some(record) = self.records.next() else {
                self.end(&mut out);
                self.done = true;
                break;
            };
            if !std::mem::take(&mut self.first) {
                out.push(b',');
            }
            self.renderer().item(&record, &mut out);
        }
        out.into()
    }
}

impl PieceWriter for JsonListWriter {
    fn is_done(&self) -> bool {
        self.done
    }

    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        if self.done {
            return Ok(None);
        }
        let is_long = self.renderer().is_long(self.records.as_slice());
        let objects = Arc::clone(&self.objects);
        objects.compute(is_long, async move { Some((self.next_piece(), self)) }).await
    }
}

/// List as a body: complete if it is short, else in pieces.
pub(crate) async fn stream(
    objects: &Arc<Objects>,
    served_resource: &Arc<ServedResource>,
    choice: Choice,
    include: Include,
    page: Page,
) -> Result<Body> {
    if choice.encoding == Encoding::Protobuf {
        return protobuf::stream(objects, served_resource, choice.form, page).await;
    }
    json(objects, served_resource, choice.form, include, page).await
}

async fn json(
    objects: &Arc<Objects>,
    served_resource: &Arc<ServedResource>,
    form: Form,
    include: Include,
    mut page: Page,
) -> Result<Body> {
    if let (Form::Table(_), Some(order)) = (form, served_resource.strategies.table.row_order()) {
        // Stable sort: rows with equal keys stay sorted by name.
        page.records.sort_by_cached_key(|record| order(&stored_object::decode(record)));
    }
    let now = objects.request_time().now;
    let renderer = Renderer { cache: None, served_resource, form, encoding: Encoding::Json, include, now };
    let writer = JsonListWriter {
        objects: objects.clone(),
        served_resource: served_resource.clone(),
        form,
        include,
        now,
        head: renderer.list_head(&page),
        records: page.records.into_iter(),
        first: true,
        done: false,
    };
    body(writer).await
}
