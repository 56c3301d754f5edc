//! Representations of objects in responses: the object, its metadata or a table row; single or in
//! a list (upstream's `transformResponseObject`).
//!
//! An object in its storage version is copied without parsing. Computed representations are created once per revision and kept
//! in a cache with a limit in bytes.

mod cache;
mod include;
mod json;
mod list;
mod metadata;
mod piece_writer;
mod protobuf;
mod table;

pub(crate) use cache::{CachedForm, FormCache, FormKey, FormKind};
pub(crate) use include::Include;
pub(crate) use list::stream;

use std::sync::Arc;

use jiff::Timestamp;
use portico_machinery::accept::{Encoding, Form};
use portico_store::Record;

use crate::served_resource::ServedResource;

/// Encoder of one representation of the objects of one kind.
#[derive(Clone, Copy)]
pub(crate) struct Renderer<'a> {
    /// Cache of representations; `None` for states that differ from the stored state of their revision (dry runs).
    pub(crate) cache: Option<&'a FormCache>,
    /// Kind in the version of the response.
    pub(crate) served_resource: &'a ServedResource,
    /// Shape of the response: object, table or metadata.
    pub(crate) form: Form,
    /// Encoding: protobuf, or JSON for all others.
    pub(crate) encoding: Encoding,
    /// Additional content of table rows.
    pub(crate) include: Include,
    /// Time that ages are relative to.
    pub(crate) now: Timestamp,
}

/// Bytes of stored objects that a serving thread decodes for a part of a list (tables, metadata, protobuf).
///
/// Limit (Requests, bytes): the threads for long work decode them.
const MAX_INLINE_BYTES: usize = 64 * 1024;

impl Renderer<'_> {
    /// True if encoding the first of these records may take long. Copying stored bytes never does.
    fn is_long(&self, records: &[Arc<Record>]) -> bool {
        let is_json = self.encoding != Encoding::Protobuf;
        let is_copied = is_json && self.form == Form::Object && self.served_resource.storage_kind.is_none();
        let mut bytes = 0;
        let mut sizes = records.iter().map(|record| record.value.json().len());
        !is_copied
            && sizes.any(|size| {
                bytes += size;
                bytes > MAX_INLINE_BYTES
            })
    }

    /// Encodes one object: JSON without a closing newline, or protobuf with its envelope.
    pub(crate) fn object(&self, record: &Record) -> Vec<u8> {
        if self.encoding == Encoding::Protobuf {
            return self.protobuf_document(record);
        }
        match self.form {
            Form::Object => {
                let mut out = Vec::with_capacity(record.value.json().len() + 64);
                self.write_json(record, &mut out);
                out
            }
            Form::Metadata(version) | Form::MetadataList(version) => self.metadata(record, version),
            Form::Table(_) => self.table_of_one(record, true),
        }
    }

    /// Cache for representations of this record; `None` for a record without a revision, which cannot be a cache key.
    fn cache_for(&self, record: &Record) -> Option<&FormCache> {
        self.cache.filter(|_| record.revision != 0)
    }

    /// Encodes one object as a response body: JSON ends with a newline.
    pub(crate) fn document(&self, record: &Record) -> Vec<u8> {
        let mut out = self.object(record);
        if self.encoding != Encoding::Protobuf {
            out.push(b'\n');
        }
        out
    }
}
