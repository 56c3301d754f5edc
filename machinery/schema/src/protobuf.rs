//! Protobuf along a type's description, both ways, as upstream's generated code reads and writes it.
//!
//! Objects are JSON here: what is written is what JSON would say (absent fields that are no pointers as their zero
//! values), what is read is the object that JSON would have been (zero values of such fields left out).

mod decode;
mod encode;

pub(crate) use decode::document;
pub(crate) use encode::message;
