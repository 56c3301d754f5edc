//! Extracts the name of an object from its encoding.

use portico_machinery::Object;
use portico_machinery::protobuf::{PREFIX, Reader, decode_envelope};

/// Returns `metadata.name` of an object in JSON or protobuf; empty if it has none, or if the encoding is another one.
#[must_use]
pub fn object_name(body: &[u8]) -> String {
    if body.starts_with(&PREFIX) {
        return in_protobuf(body).unwrap_or_default();
    }
    Object::from_json(body)
        .map(|object| object.at(&["metadata", "name"]).str().to_owned())
        .unwrap_or_default()
}

fn in_protobuf(body: &[u8]) -> Option<String> {
    let metadata = first_field(decode_envelope(body).ok()?.raw)?;
    String::from_utf8(first_field(metadata)?.to_vec()).ok()
}

/// Returns field 1 of a message: the metadata of an object, or the name in metadata.
fn first_field(message: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(message);
    while let Some((number, value)) = reader.field().ok()? {
        if number == 1 {
            return value.bytes("metadata").ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use portico_machinery::protobuf::{Writer, encode_envelope};

    #[test]
    fn the_name_is_read_whatever_the_encoding() {
        let mut message = Writer::default();
        message.message(1, |metadata| metadata.string(1, "web"));
        let protobuf = encode_envelope("apps/v1", "Deployment", &message.into_bytes());
        for (body, name) in [
            (protobuf.as_slice(), "web"),
            (br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"web"}}"#, "web"),
            (br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"generateName":"web-"}}"#, ""),
            (b"k8s\0", ""),
            (b"", ""),
        ] {
            assert_eq!(object_name(body), name);
        }
    }
}
