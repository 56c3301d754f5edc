//! Type checking of list, map and object literals.

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
        // The items of an empty list may have any type.
        Type::list(joined.unwrap_or_else(|| self.mapping.fresh_variable()))
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
        let keys = keys.unwrap_or_else(|| self.mapping.fresh_variable());
        let values = values.unwrap_or_else(|| self.mapping.fresh_variable());
        let map = Type::map(keys, values);
        // Limits the size of types: nested maps can grow without bound, see the mapping.
        self.mapping.substitute(&map, false);
        map
    }

    /// Checks an object literal. If the environment has no constructible types, objects can only come from variables.
    pub(super) fn object(&mut self, id: Id, name: &str, fields: &mut [FieldValue]) -> Type {
        let object_type =
            self.objects.and_then(|objects| objects.find(name.strip_prefix('.').unwrap_or(name)));
        for field in fields {
            self.check(&mut field.value);
            if let Some(Type::Object(object)) = &object_type {
                self.field_value(object, field);
            }
        }
        if let Some(object_type) = object_type {
            return object_type;
        }
        if let Some(ty) = self.language.named_type(name.strip_prefix('.').unwrap_or(name)) {
            self.report(id, format!("'{ty}' is not a message type"));
            return Type::Error;
        }
        self.report_undeclared(id, name)
    }

    /// Checks that an object has a field, and that the value has the type of the field.
    fn field_value(&mut self, object: &ObjectType, field: &FieldValue) {
        let found = self.entry_type(&field.value, field.optional);
        let Some(expected) = object.field_type(&field.name) else {
            self.report(field.id, format!("undefined field '{}'", field.name));
            return;
        };
        if !self.mapping.assignable(&expected, &found) {
            let (name, found) = (&field.name, self.mapping.substitute(&found, false));
            let text =
                format!("expected type of field '{name}' is '{expected}' but provided type is '{found}'");
            self.report(field.id, text);
        }
    }

    /// Returns the type of an item; for an optional item, the type of the optional's value.
    fn entry_type(&mut self, value: &Expr, optional: bool) -> Type {
        let ty = self.type_of(value);
        if !optional {
            return ty;
        }
        if let Some(inner) = ty.optional_of() {
            return inner.clone();
        }
        if !ty.is_dyn() {
            self.mismatch(value.id, &Type::optional(ty.clone()), &ty);
        }
        ty
    }

    /// Joins the type of an item with that of the previous ones. Items of different types are `dyn`, which a validator rejects
    /// after the check.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.mapping.assignable(&previous, &current) {
            return most_general(&previous, &current).clone();
        }
        Type::Dyn
    }
}
