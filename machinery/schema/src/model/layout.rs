//! Where protobuf puts the fields of a type: by number, some of them inside embedded messages.

use super::Type;

/// One field number of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slot {
    pub number: u32,
    pub part: Part,
}

/// What stands under a field number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// The field at this place of the type.
    Field(u16),
    /// A message that JSON does not know of; its fields are the type's own.
    Embedded(Box<[Slot]>),
}

/// The slots of a type, by number.
pub(super) fn of(ty: &Type) -> Box<[Slot]> {
    level(ty, "")
}

/// What stands directly inside the embedded message at this path.
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

/// What an embedded message is inside of, empty for the type itself.
fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}
