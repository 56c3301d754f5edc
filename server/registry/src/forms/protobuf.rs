//! Protobuf: messages of objects, computed once per revision, and lists with a length prefix.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use portico_machinery::Object;
use portico_machinery::accept::{Encoding, Form, MetaVersion};
use portico_machinery::protobuf::{ENVELOPE_TAIL, Writer, envelope_head, field_length, seal};
use portico_store::Record;
use tokio::task::yield_now;

use super::pieces::{PIECE, Pieces, body};
use super::{FormKey, Include, Made, Renderer, Shape};
use crate::Result;
use crate::answer::Body;
use crate::list::Page;
use crate::objects::Objects;
use crate::served::ServedResource;
use crate::stored;

/// Number of objects that are measured before the task yields.
const TURN: usize = 256;

impl Renderer<'_> {
    /// Encodes the object with its envelope.
    pub(super) fn sealed(&self, record: &Record) -> Vec<u8> {
        let message = self.message(record);
        match self.form {
            Form::Metadata(version) | Form::MetadataList(version) => {
                seal(version.api_version(), "PartialObjectMetadata", &message)
            }
            _ => seal(&self.served.api_version, &self.served.info.gvk.kind, &message),
        }
    }

    /// Message of the object, without an envelope.
    fn message(&self, record: &Record) -> Bytes {
        let (shape, make): (_, fn(&Self, &Record) -> Vec<u8>) = match self.form {
            Form::Metadata(_) | Form::MetadataList(_) => (Shape::MetadataMessage, Self::metadata_message),
            _ => (Shape::Message, Self::object_message),
        };
        let make = || Bytes::from(make(self, record));
        let Some(cache) = self.cache_for(record) else { return make() };
        let key = FormKey::new(record, self.served.id, shape);
        match cache.get_or_make(key, || Made::Bytes(make())) {
            Made::Bytes(bytes) => bytes,
            Made::Cells(_) | Made::Frame(_) | Made::Record(_) => make(),
        }
    }

    fn object_message(&self, record: &Record) -> Vec<u8> {
        let mut object = stored::decode(record);
        self.served.to_version(&mut object);
        self.served.info.schema.to_protobuf(&object)
    }

    fn metadata_message(&self, record: &Record) -> Vec<u8> {
        let object = Object::from_json(&self.metadata(record, MetaVersion::V1)).unwrap_or_default();
        let mut writer = Writer::default();
        // The metadata of every kind is field 1, as in this message.
        if let (Some(metadata), Some(schema)) = (object.object_at("metadata"), self.served.metadata_schema())
        {
            writer.bytes(1, &schema.to_protobuf(&metadata));
        }
        writer.into_bytes()
    }
}

/// State of writing a protobuf list.
struct Messages {
    inner: Arc<Objects>,
    served: Arc<ServedResource>,
    form: Form,
    now: Timestamp,
    records: std::vec::IntoIter<Arc<Record>>,
    /// Metadata of the list, until it is written.
    metadata: Vec<u8>,
    begun: bool,
    done: bool,
}

impl Messages {
    fn renderer(&self) -> Renderer<'_> {
        Renderer {
            cache: Some(&self.inner.forms),
            served: &self.served,
            form: self.form,
            encoding: Encoding::Protobuf,
            include: Include::None,
            now: self.now,
        }
    }

    /// Length of the content of the envelope, which precedes it. Computes the message of every object; messages that are not
    /// cached are computed again when they are written.
    async fn length(&self) -> u64 {
        let mut length = self.metadata.len() as u64;
        for (at, record) in self.records.as_slice().iter().enumerate() {
            if at % TURN == TURN - 1 {
                yield_now().await;
            }
            length += field_length(2, self.renderer().message(record).len() as u64);
        }
        length
    }

    fn head(&mut self, length: u64) -> Vec<u8> {
        let kind = match self.form {
            Form::Metadata(_) | Form::MetadataList(_) => "PartialObjectMetadataList",
            _ => &self.served.info.list_kind,
        };
        let version = self.form.api_version().unwrap_or(&self.served.api_version);
        let mut out = envelope_head(version, kind, length);
        out.append(&mut self.metadata);
        out
    }

    /// Writes the next piece after the bytes in `begun`.
    fn piece(&mut self, begun: Vec<u8>) -> Bytes {
        let mut writer = Writer::from(begun);
        while writer.len() < PIECE {
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

impl Pieces for Messages {
    fn is_done(&self) -> bool {
        self.done
    }

    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        if self.done {
            return Ok(None);
        }
        let is_long = self.renderer().is_long(self.records.as_slice());
        let inner = Arc::clone(&self.inner);
        let piece = async move {
            let begun = match std::mem::replace(&mut self.begun, true) {
                true => Vec::with_capacity(PIECE + PIECE / 8),
                false => {
                    let length = self.length().await;
                    self.head(length)
                }
            };
            Some((self.piece(begun), self))
        };
        inner.compute(is_long, piece).await
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
    inner: &Arc<Objects>,
    served: &Arc<ServedResource>,
    form: Form,
    page: Page,
) -> Result<Body> {
    let messages = Messages {
        inner: inner.clone(),
        served: served.clone(),
        form,
        now: inner.moment().now,
        metadata: list_metadata(&page),
        records: page.records.into_iter(),
        begun: false,
        done: false,
    };
    body(messages).await
}
