//! Bodies in protobuf: an object as its kind encodes it, correct or damaged.

use std::sync::{Arc, LazyLock};

use portico_kinds::Kinds;
use portico_machinery::GroupVersion;
use portico_schema::Format;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::Value;

/// Media type of protobuf.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// Start of an envelope.
const MAGIC: &[u8] = b"k8s\0";

static KINDS: LazyLock<Arc<Kinds>> = LazyLock::new(|| Kinds::builtin().unwrap());

/// Encodes the object in its envelope; `None` unless it is of a built-in kind and has only its fields.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let version: GroupVersion = object["apiVersion"].as_str()?.parse().ok()?;
    let kind = version.kind(object["kind"].as_str()?);
    let schema = &KINDS.by_kind(&kind)?.schema;
    let decoded = schema.decode(object.to_string().as_bytes(), Format::Json, &kind).ok()?;
    Some(schema.to_enveloped_protobuf(&decoded.object))
}

/// Damage to the bytes. Positions are thousandths of their length.
#[derive(Clone, Copy, Debug)]
pub enum Damage {
    Cut(usize),
    Flip(usize, u8),
    Set(usize, u8),
    Insert(usize, u8),
    Remove(usize),
    /// The message after the magic number is repeated.
    Twice,
    /// The envelope has an unknown field.
    Unknown,
    /// The envelope has this content type.
    ContentType(&'static str),
    /// The envelope has this content encoding.
    Encoded(&'static str),
    /// The magic number is missing.
    NoMagic,
    OnlyMagic,
    Empty,
}

impl Damage {
    pub fn random(random: &mut StdRng) -> Self {
        let (at, byte) = (random.random_range(0..1000), random.random());
        match random.random_range(0..16) {
            0..=2 => Self::Cut(at),
            3..=5 => Self::Flip(at, 1 << random.random_range(0..8)),
            6..=8 => Self::Set(at, *[0, 1, 0x7f, 0x80, 0xff, byte].choose(random).unwrap()),
            9 => Self::Insert(at, byte),
            10 => Self::Remove(at),
            11 => Self::Twice,
            12 => Self::Unknown,
            13 => Self::ContentType(["", "application/json", MEDIA_TYPE, "x"].choose(random).unwrap()),
            14 => Self::Encoded(["", "gzip", "x"].choose(random).unwrap()),
            _ => *[Self::NoMagic, Self::OnlyMagic, Self::Empty].choose(random).unwrap(),
        }
    }

    pub fn apply(self, mut bytes: Vec<u8>) -> Vec<u8> {
        let offset = |thousandths: usize| thousandths * bytes.len() / 1000;
        match self {
            Self::Cut(at) => bytes.truncate(offset(at)),
            Self::Flip(at, bit) => {
                let at = offset(at);
                bytes[at] ^= bit;
            }
            Self::Set(at, byte) => {
                let at = offset(at);
                bytes[at] = byte;
            }
            Self::Insert(at, byte) => bytes.insert(offset(at), byte),
            Self::Remove(at) => drop(bytes.remove(offset(at))),
            Self::Twice => bytes.extend_from_within(MAGIC.len()..),
            // Field 1000, a number.
            Self::Unknown => bytes.extend([0xc0, 0x3e, 1]),
            Self::ContentType(text) => append(&mut bytes, 4, text),
            Self::Encoded(text) => append(&mut bytes, 3, text),
            Self::NoMagic => drop(bytes.drain(..MAGIC.len())),
            Self::OnlyMagic => bytes.truncate(MAGIC.len()),
            Self::Empty => bytes.clear(),
        }
        bytes
    }
}

/// Appends a field that is a short text.
fn append(bytes: &mut Vec<u8>, field: u8, text: &str) {
    bytes.push(field << 3 | 2);
    bytes.push(u8::try_from(text.len()).unwrap());
    bytes.extend_from_slice(text.as_bytes());
}

#[test]
fn objects_are_encoded_and_damaged() {
    let object = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}});
    let bytes = encode(&object).unwrap();
    assert!(bytes.starts_with(MAGIC));
    assert_eq!(Damage::NoMagic.apply(bytes.clone()), &bytes[MAGIC.len()..]);
    assert_eq!(Damage::Cut(500).apply(bytes.clone()).len(), bytes.len() / 2);
    assert_eq!(Damage::Twice.apply(bytes.clone()).len(), bytes.len() * 2 - MAGIC.len());
    assert!(encode(&serde_json::json!({"apiVersion": "none/v1", "kind": "None"})).is_none());
}
