//! Protobuf layout of a type: its fields by number, some of them inside embedded messages.

use super::Type;

/// One field of a protobuf message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slot {
    pub number: u32,
    pub part: Part,
}

/// Content of a protobuf field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Index of a field of the type.
    Field(u16),
    /// Message that JSON does not have. Its fields are fields of the type.
    Embedded(Box<[Slot]>),
}

/// Returns the protobuf fields of a type, sorted by number.
pub(super) fn of(ty: &Type) -> Box<[Slot]> {
    level(ty, "")
}

/// Returns the fields directly inside the embedded message at this path.
fn level(ty: &Type, path: &str) -> Box<[Slot]> {
    let fields = (0_u16..).zip(&ty.fields).filter(|(_, f)| f.number > 0);
    let fields = fields
        .filter(|(_, f)| f.inside.as_deref().unwrap_or_default() == path)
        .map(|(at, f)| Slot { number: f.number, part: Part::Field(at) });
    let embedded = ty.inline.iter().filter(|(inner, _)| parent(inner) == path);
    let embedded = embedded.map(|(inner, number)| {
        let part = Part::Embedded(level(ty, inner));
        Slot { number: *number, part }
    });
    let mut slots: Vec<Slot> = fields.chain(embedded).collect();
    slots.sort_unstable_by_key(|slot| slot.number);
    slots.into()
}

/// Returns the path of the enclosing message, empty for the type itself.
fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}
