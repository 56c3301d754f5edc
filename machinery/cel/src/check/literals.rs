//! Lists, maps and objects that are written out.

use super::Checker;
use super::mapping::most_general;
use crate::ast::{Entry, Expr, FieldValue, Id, Item};
use crate::types::{ObjectType, Type};

impl Checker<'_> {
    pub(super) fn list(&mut self, items: &mut [Item]) -> Type {
        let mut joined = None;
        for item in items {
            self.check(&mut item.value);
            let ty = self.entry_type(&item.value, item.optional);
            joined = Some(self.join(joined, ty));
        }
        // Of an empty list anything may be the items.
        Type::list(joined.unwrap_or_else(|| self.mapping.fresh()))
    }

    pub(super) fn map(&mut self, entries: &mut [Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(&mut entry.key);
            let key = self.type_of(&entry.key);
            keys = Some(self.join(keys, key));
            self.check(&mut entry.value);
            let value = self.entry_type(&entry.value, entry.optional);
            values = Some(self.join(values, value));
        }
        let keys = keys.unwrap_or_else(|| self.mapping.fresh());
        let values = values.unwrap_or_else(|| self.mapping.fresh());
        let map = Type::map(keys, values);
        // Maps of maps may grow beyond all bounds: see the mapping.
        self.mapping.substitute(&map, false);
        map
    }

    /// Where the environment knows no types that can be written out, objects come from variables alone.
    pub(super) fn object(&mut self, id: Id, name: &str, fields: &mut [FieldValue]) -> Type {
        let known = self.objects.and_then(|objects| objects.find(name.strip_prefix('.').unwrap_or(name)));
        for field in fields {
            self.check(&mut field.value);
            if let Some(Type::Object(object)) = &known {
                self.field_value(object, field);
            }
        }
        if let Some(known) = known {
            return known;
        }
        if let Some(ty) = self.language.named_type(name.strip_prefix('.').unwrap_or(name)) {
            self.report(id, format!("'{ty}' is not a message type"));
            return Type::Error;
        }
        self.undeclared(id, name)
    }

    /// A field must be one of its object, and its value of the field's type.
    fn field_value(&mut self, object: &ObjectType, field: &FieldValue) {
        let found = self.entry_type(&field.value, field.optional);
        let Some(wanted) = object.field_type(&field.name) else {
            self.report(field.id, format!("undefined field '{}'", field.name));
            return;
        };
        if !self.mapping.assignable(&wanted, &found) {
            let (name, found) = (&field.name, self.mapping.substitute(&found, false));
            let text =
                format!("expected type of field '{name}' is '{wanted}' but provided type is '{found}'");
            self.report(field.id, text);
        }
    }

    /// The type of an item; of an optional one what the optional holds.
    fn entry_type(&mut self, value: &Expr, optional: bool) -> Type {
        let ty = self.type_of(value);
        if !optional {
            return ty;
        }
        if let Some(held) = ty.optional_of() {
            return held.clone();
        }
        if !ty.is_dyn() {
            self.mismatch(value.id, &Type::optional(ty.clone()), &ty);
        }
        ty
    }

    /// The type of all items so far. Those of different types may be anything: a validator refuses them afterwards.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.mapping.assignable(&previous, &current) {
            return most_general(&previous, &current).clone();
        }
        Type::Dyn
    }
}
