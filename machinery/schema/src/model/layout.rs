//! Protobuf layout of a type: its fields by number, some of them inside embedded messages.

use super::Type;

/// One field of a protobuf message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProtoField {
    pub number: u32,
    pub content: ProtoFieldContent,
}

/// Content of a protobuf field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProtoFieldContent {
    /// Index of a field of the type.
    Field(u16),
    /// Message that JSON does not have. Its fields are fields of the type.
    Embedded(Box<[ProtoField]>),
}

/// Returns the protobuf fields of a type, sorted by number.
pub(super) fn proto_fields(ty: &Type) -> Box<[ProtoField]> {
    fields_inside(ty, "")
}

/// Returns the fields directly inside the embedded message at this path.
fn fields_inside(ty: &Type, path: &str) -> Box<[ProtoField]> {
    let fields = (0_u16..).zip(&ty.fields).filter(|(_, f)| f.number > 0);
    let fields = fields
        .filter(|(_, f)| f.embedded_in.as_deref().unwrap_or_default() == path)
        .map(|(index, f)| ProtoField { number: f.number, content: ProtoFieldContent::Field(index) });
    let embedded = ty.embedded_messages.iter().filter(|(inner, _)| parent(inner) == path);
    let embedded = embedded.map(|(inner, number)| {
        let content = ProtoFieldContent::Embedded(fields_inside(ty, inner));
        ProtoField { number: *number, content }
    });
    let mut slots: Vec<ProtoField> = fields.chain(embedded).collect();
    slots.sort_unstable_by_key(|slot| slot.number);
    slots.into()
}

/// Returns the path of the enclosing message, empty for the type itself.
fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}
