//! JSON of the object: copied from the store, or converted to another version once.

use bytes::Bytes;
use portico_store::Record;

use super::{CachedForm, FormKey, FormKind, Renderer};
use crate::stored_object;

impl Renderer<'_> {
    /// Writes the object's JSON in the version of the request.
    pub(super) fn write_json(&self, record: &Record, out: &mut Vec<u8>) {
        if self.served_resource.storage_kind.is_some() {
            out.extend_from_slice(&self.converted_json(record));
        } else if record.revision == 0 {
            out.extend_from_slice(record.value.json());
        } else {
            // Writing into a Vec cannot fail.
            let _infallible = record.write_json(out);
        }
    }

    /// Writes the object's JSON without kind and apiVersion, as list items of built-in kinds.
    pub(super) fn write_item(&self, record: &Record, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_json(record, out);
        let head = &self.served_resource.json_prefix;
        if !head.is_empty() && out[start..].starts_with(head) {
            out[start] = b'{';
            out.drain(start + 1..start + head.len());
        }
    }

    fn converted_json(&self, record: &Record) -> Bytes {
        let make = || {
            let mut object = stored_object::decode(record);
            self.served_resource.to_version(&mut object);
            Bytes::from(object.to_json())
        };
        let Some(cache) = self.cache_for(record) else { return make() };
        let key = FormKey::new(record, self.served_resource.id, FormKind::Json);
        match cache.get_or_make(key, || CachedForm::Bytes(make())) {
            CachedForm::Bytes(bytes) => bytes,
            CachedForm::Cells(_) | CachedForm::Frame(_) | CachedForm::Record(_) => make(),
        }
    }
}
