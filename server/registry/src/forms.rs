//! The shapes in which an object leaves: itself, its metadata, a table row; alone or in a list (upstream's `transformResponseObject`).
//!
//! An object in its storage version is copied out without parsing. What has to be made is made once per revision and
//! kept in one cache bounded in bytes.

mod cache;
mod include;
mod json;
mod list;
mod metadata;
mod pieces;
mod protobuf;
mod table;

pub(crate) use cache::{FormCache, FormKey, Made, Shape};
pub(crate) use include::Include;
pub(crate) use list::stream;

use std::sync::Arc;

use jiff::Timestamp;
use portico_machinery::accept::{Encoding, Form};
use portico_store::Record;

use crate::served::ServedResource;

/// Makes one form of one kind's objects.
#[derive(Clone, Copy)]
pub(crate) struct Renderer<'a> {
    /// Where made forms are kept; nothing for states that are not those of the revision they carry (dry runs).
    pub(crate) cache: Option<&'a FormCache>,
    /// The kind, in the version to answer in.
    pub(crate) served: &'a ServedResource,
    /// The shape.
    pub(crate) form: Form,
    /// How it is written: protobuf, or JSON for everybody else.
    pub(crate) encoding: Encoding,
    /// What table rows carry besides cells.
    pub(crate) include: Include,
    /// Against which ages are rendered.
    pub(crate) now: Timestamp,
}

/// Bytes of stored objects that a serving thread decodes for a part of a list (tables, metadata, protobuf).
///
/// Limit (Requests, bytes): the threads for long work decode them.
const MAX_INLINE_BYTES: usize = 64 * 1024;

impl Renderer<'_> {
    /// True if the first of these records may take long to write. Stored bytes that are copied do not.
    fn is_long(&self, records: &[Arc<Record>]) -> bool {
        let is_json = self.encoding != Encoding::Protobuf;
        let is_copied = is_json && self.form == Form::Object && self.served.stored_as.is_none();
        let mut bytes = 0;
        let mut sizes = records.iter().map(|record| record.value.json().len());
        !is_copied
            && sizes.any(|size| {
                bytes += size;
                bytes > MAX_INLINE_BYTES
            })
    }

    /// One object, without a closing newline; in protobuf with its envelope.
    pub(crate) fn object(&self, record: &Record) -> Vec<u8> {
        if self.encoding == Encoding::Protobuf {
            return self.sealed(record);
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

    /// The cache for forms of this record; none for one at no revision, as nothing would identify it.
    fn cache_for(&self, record: &Record) -> Option<&FormCache> {
        self.cache.filter(|_| record.revision != 0)
    }

    /// One object as an answer: JSON with the closing newline.
    pub(crate) fn document(&self, record: &Record) -> Vec<u8> {
        let mut out = self.object(record);
        if self.encoding != Encoding::Protobuf {
            out.push(b'\n');
        }
        out
    }
}
