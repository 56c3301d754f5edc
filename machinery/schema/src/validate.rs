//! Generic validation: rules that the type descriptions state for single fields.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object};

use crate::model::{Field, FieldType, Type, TypeSet};
use crate::typed::Typed;

pub(crate) fn object(schema: &Typed, object: &Object) -> Vec<Error> {
    let mut errors = Vec::new();
    fields(schema.types(), schema.root(), &object.cursor(), &mut errors);
    errors
}

fn fields(types: &TypeSet, ty: &Type, at: &Cursor<'_>, errors: &mut Vec<Error>) {
    if !ty.has_rules {
        return;
    }
    for field in &ty.fields {
        let here = at.field(&field.name);
        rules(field, &here, errors);
        if here.is_present() {
            below(types, &field.ty, &here, errors);
        }
    }
}

fn below(types: &TypeSet, ty: &FieldType, at: &Cursor<'_>, errors: &mut Vec<Error>) {
    match types.resolve(ty) {
        FieldType::Ref(id) => fields(types, types.get(*id), at, errors),
        FieldType::List(of) => at.items().for_each(|item| below(types, of, &item, errors)),
        FieldType::Map(of) => at.entries().for_each(|(_, item)| below(types, of, &item, errors)),
        _ => {}
    }
}

fn rules(field: &Field, at: &Cursor<'_>, errors: &mut Vec<Error>) {
    let rules = &field.rules;
    let empty = !at.is_present() || (at.opt_str() == Some("")) || (is_collection(&field.ty) && at.is_empty());
    if empty {
        if rules.not_empty {
            errors.push(at.required(""));
        }
        return;
    }
    if rules.enumerated
        && let Some(text) = at.opt_str()
        && !field.enumeration.iter().any(|known| **known == *text)
    {
        let supported: Vec<&str> = field.enumeration.iter().map(AsRef::as_ref).collect();
        errors.push(at.not_supported(&supported));
    }
    if let Some(number) = at.i64() {
        range(rules.minimum, rules.maximum, number, at, errors);
    }
    if let Some(limit) = rules.max_length {
        length(limit, at, errors);
    }
}

fn is_collection(ty: &FieldType) -> bool {
    matches!(ty, FieldType::List(_) | FieldType::Map(_))
}

fn range(least: Option<i64>, most: Option<i64>, number: i64, at: &Cursor<'_>, errors: &mut Vec<Error>) {
    let text = match (least, most) {
        (Some(0), None) if number < 0 => "must be greater than or equal to 0".to_owned(),
        (Some(least), Some(most)) if !(least..=most).contains(&number) => {
            format!("must be between {least} and {most}, inclusive")
        }
        (Some(least), None) if number < least => format!("must be greater than or equal to {least}"),
        (None, Some(most)) if number > most => format!("must be less than or equal to {most}"),
        _ => return,
    };
    errors.push(at.invalid(&text));
}

fn length(limit: usize, at: &Cursor<'_>, errors: &mut Vec<Error>) {
    match at.opt_str() {
        Some(text) if text.len() > limit => errors.push(Error::too_long(&at.path(), limit)),
        None if at.len() > limit => errors.push(Error::too_many(&at.path(), at.len(), limit)),
        _ => {}
    }
}

pub(crate) fn update(schema: &Typed, new: &Object, old: &Object) -> Vec<Error> {
    let mut errors = Vec::new();
    changes(schema.types(), schema.root(), &new.cursor(), &old.cursor(), &mut errors);
    errors
}

/// Checks immutable fields of nested structs. Elements of lists and maps have no identity here and are not compared.
fn changes(types: &TypeSet, ty: &Type, new: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Vec<Error>) {
    if !ty.has_rules {
        return;
    }
    for field in &ty.fields {
        let (now, then) = (new.field(&field.name), old.field(&field.name));
        if field.rules.immutable && !now.same_as(&then) {
            errors.push(immutable(&now));
        }
        if let FieldType::Ref(id) = types.resolve(&field.ty) {
            changes(types, types.get(*id), &now, &then, errors);
        }
    }
}

fn immutable(at: &Cursor<'_>) -> Error {
    Error::invalid_printed(&Path::new(at.path().as_str()), &at.printed(), "field is immutable")
}
