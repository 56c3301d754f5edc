//! Lists: one document in pieces, so that a long list is never in memory as a whole.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use portico_machinery::accept::{Choice, Encoding, Form};
use portico_store::Record;

use super::pieces::{PIECE, Pieces, body};
use super::{Include, Renderer, protobuf};
use crate::Result;
use crate::answer::Body;
use crate::list::Page;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::stored;

/// Metadata of a list; `bare` lists, those of custom resources, also contain an empty token.
pub(super) fn metadata(page: &Page, bare: bool) -> Vec<u8> {
    if page.revision == 0 {
        return b"{}".to_vec();
    }
    let mut out = format!("{{\"resourceVersion\":\"{}\"", page.revision);
    if bare || !page.continue_token.is_empty() {
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

pub(super) fn head(kind: &str, api_version: &str, page: &Page, bare: bool) -> Vec<u8> {
    let mut out =
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":").into_bytes();
    out.extend_from_slice(&metadata(page, bare));
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
                let bare = self.served.custom.is_some();
                head(&self.served.info.list_kind, &self.served.api_version, page, bare)
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
struct Writer {
    inner: Arc<Objects>,
    served: Arc<ServedResource>,
    form: Form,
    include: Include,
    now: Timestamp,
    records: std::vec::IntoIter<Arc<Record>>,
    first: bool,
    begun: Vec<u8>,
    done: bool,
}

impl Writer {
    /// Writes the end of the document. Tables of kinds without a printer in upstream have null instead of an empty list of rows.
    fn end(&self, out: &mut Vec<u8>) {
        let is_table = matches!(self.form, Form::Table(_));
        if is_table && self.first && self.served.info.has_default_columns() && out.pop() == Some(b'[') {
            out.extend_from_slice(b"null}\n");
        } else {
            out.extend_from_slice(b"]}\n");
        }
    }

    fn renderer(&self) -> Renderer<'_> {
        Renderer {
            cache: Some(&self.inner.forms),
            served: &self.served,
            form: self.form,
            encoding: Encoding::Json,
            include: self.include,
            now: self.now,
        }
    }

    fn piece(&mut self) -> Bytes {
        let mut out = std::mem::take(&mut self.begun);
        if out.is_empty() {
            out.reserve(PIECE + PIECE / 8);
        }
        while out.len() < PIECE {
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

impl Pieces for Writer {
    fn is_done(&self) -> bool {
        self.done
    }

    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        if self.done {
            return Ok(None);
        }
        let is_long = self.renderer().is_long(self.records.as_slice());
        let inner = Arc::clone(&self.inner);
        inner.compute(is_long, async move { Some((self.piece(), self)) }).await
    }
}

/// List as a body: complete if it is short, else in pieces.
pub(crate) async fn stream(
    inner: &Arc<Objects>,
    served: &Arc<ServedResource>,
    wanted: Choice,
    include: Include,
    page: Page,
) -> Result<Body> {
    if wanted.encoding == Encoding::Protobuf {
        return protobuf::stream(inner, served, wanted.form, page).await;
    }
    json(inner, served, wanted.form, include, page).await
}

async fn json(
    inner: &Arc<Objects>,
    served: &Arc<ServedResource>,
    form: Form,
    include: Include,
    mut page: Page,
) -> Result<Body> {
    if let (Form::Table(_), Some(order)) = (form, served.strategies.table.row_order()) {
        // Stable sort: rows with equal keys stay sorted by name.
        page.records.sort_by_cached_key(|record| order(&stored::decode(record)));
    }
    let now = inner.moment().now;
    let renderer = Renderer { cache: None, served, form, encoding: Encoding::Json, include, now };
    let writer = Writer {
        inner: inner.clone(),
        served: served.clone(),
        form,
        include,
        now,
        begun: renderer.list_head(&page),
        records: page.records.into_iter(),
        first: true,
        done: false,
    };
    body(writer).await
}
