//! Protobuf encoding and decoding based on type descriptions, compatible with upstream's generated code.
//!
//! Objects are represented as JSON. The encoder writes the fields that JSON would contain, plus the zero values of absent
//! fields that are not pointers. The decoder returns the object that JSON would contain, without zero values of such fields.

mod decode;
mod encode;

pub(crate) use decode::decode_document;
pub(crate) use encode::encode_message;
