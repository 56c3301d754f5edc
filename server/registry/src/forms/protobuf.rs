//! Protobuf: messages of objects, computed once per revision, and lists with a length prefix.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use portico_machinery::Object;
use portico_machinery::accept::{Encoding, Form, MetaVersion};
use portico_machinery::protobuf::{ENVELOPE_TAIL, Writer, encode_envelope, envelope_head, field_length};
use portico_store::Record;
use tokio::task::yield_now;

use super::piece_writer::{PIECE_BYTES, PieceWriter, body};
use super::{CachedForm, FormKey, FormKind, Include, Renderer};
use crate::Result;
use crate::answer::Body;
use crate::list::Page;
use crate::objects::Objects;
use crate::served_resource::ServedResource;
use crate::stored_object;

/// Number of objects that are measured before the task yields.
const MEASURED_PER_TURN: usize = 256;

impl Renderer<'_> {
    /// Encodes the object with its envelope.
    pub(super) fn protobuf_document(&self, record: &Record) -> Vec<u8> {
        let message = self.message(record);
        match self.form {
            Form::Metadata(version) | Form::MetadataList(version) => {
                encode_envelope(version.api_version(), "PartialObjectMetadata", &message)
            }
            _ => encode_envelope(
                &self.served_resource.api_version,
                &self.served_resource.info.gvk.kind,
                &message,
            ),
        }
    }

    /// Message of the object, without an envelope.
    fn message(&self, record: &Record) -> Bytes {
        let (form_kind, make): (_, fn(&Self, &Record) -> Vec<u8>) = match self.form {
            Form::Metadata(_) | Form::MetadataList(_) => (FormKind::MetadataMessage, Self::metadata_message),
            _ => (FormKind::Message, Self::object_message),
        };
        let make = || Bytes::from(make(self, record));
        let Some(cache) = self.cache_for(record) else { return make() };
        let key = FormKey::new(record, self.served_resource.id, form_kind);
        match cache.get_or_make(key, || CachedForm::Bytes(make())) {
            CachedForm::Bytes(bytes) => bytes,
            CachedForm::Cells(_) | CachedForm::Frame(_) | CachedForm::Record(_) => make(),
        }
    }

    fn object_message(&self, record: &Record) -> Vec<u8> {
        let mut object = stored_object::decode(record);
        self.served_resource.to_version(&mut object);
        self.served_resource.info.schema.to_protobuf(&object)
    }

    fn metadata_message(&self, record: &Record) -> Vec<u8> {
        let object = Object::from_json(&self.metadata(record, MetaVersion::V1)).unwrap_or_default();
        let mut writer = Writer::default();
        // The metadata of every kind is field 1, as in this message.
        if let (Some(metadata), Some(schema)) =
            (object.object_at("metadata"), self.served_resource.metadata_schema())
        {
            writer.bytes(1, &schema.to_protobuf(&metadata));
        }
        writer.into_bytes()
    }
}

/// State of writing a protobuf list.
struct ProtobufListWriter {
    objects: Arc<Objects>,
    served_resource: Arc<ServedResource>,
    form: Form,
    now: Timestamp,
    records: std::vec::IntoIter<Arc<Record>>,
    /// Metadata of the list, until it is written.
    metadata: Vec<u8>,
    head_written: bool,
    done: bool,
}

impl ProtobufListWriter {
    fn renderer(&self) -> Renderer<'_> {
        Renderer {
            cache: Some(&self.objects.forms),
            served_resource: &self.served_resource,
            form: self.form,
            encoding: Encoding::Protobuf,
            include: Include::None,
            now: self.now,
        }
    }

    /// Length of the content of the envelope, which precedes it. Computes the message of every object; messages that are not
    /// cached are computed again when they are written.
    async fn content_length(&self) -> u64 {
        let mut length = self.metadata.len() as u64;
        for (index, record) in self.records.as_slice().iter().enumerate() {
            if index % MEASURED_PER_TURN == MEASURED_PER_TURN - 1 {
                yield_now().await;
            }
            length += field_length(2, self.renderer().message(record).len() as u64);
        }
        length
    }

    fn head(&mut self, length: u64) -> Vec<u8> {
        let kind = match self.form {
            Form::Metadata(_) | Form::MetadataList(_) => "PartialObjectMetadataList",
            _ => &self.served_resource.info.list_kind,
        };
        let version = self.form.api_version().unwrap_or(&self.served_resource.api_version);
        let mut out = envelope_head(version, kind, length);
        out.append(&mut self.metadata);
        out
    }

    /// Writes the next piece after the bytes in `prefix`.
    fn next_piece(&mut self, prefix: Vec<u8>) -> Bytes {
        let mut writer = Writer::from(prefix);
        while writer.len() < PIECE_BYTES {
            let Some(record) = self.records.next() else {
                writer.raw(&ENVELOPE_TAIL);
                self.done = true;
                break;
            };
            writer.bytes(2, &self.renderer().message(&record));
        }
        writer.into_bytes().into()
    }
}

impl PieceWriter for ProtobufListWriter {
    fn is_done(&self) -> bool {
        self.done
    }

    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        if self.done {
            return Ok(None);
        }
        let is_long = self.renderer().is_long(self.records.as_slice());
        let objects = Arc::clone(&self.objects);
        let piece = async move {
            let prefix = match std::mem::replace(&mut self.head_written, true) {
                true => Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8),
                false => {
                    let length = self.content_length().await;
                    self.head(length)
                }
            };
            Some((self.next_piece(prefix), self))
        };
        objects.compute(is_long, piece).await
    }
}

fn list_metadata(page: &Page) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.message(1, |w| {
        w.string(1, "");
        w.string(2, &if page.revision == 0 { String::new() } else { page.revision.to_string() });
        w.string(3, &page.continue_token);
        if let Some(remaining) = page.remaining {
            w.int(4, remaining.cast_signed());
        }
    });
    writer.into_bytes()
}

/// List as a body.
pub(super) async fn stream(
    objects: &Arc<Objects>,
    served_resource: &Arc<ServedResource>,
    form: Form,
    page: Page,
) -> Result<Body> {
    let messages = ProtobufListWriter {
        objects: objects.clone(),
        served_resource: served_resource.clone(),
        form,
        now: objects.request_time().now,
        metadata: list_metadata(&page),
        records: page.records.into_iter(),
        head_written: false,
        done: false,
    };
    body(messages).await
}
