//! Generic validation: rules that the type descriptions state for single fields.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object};

use crate::model::{Field, FieldType, Type, TypeSet};
use crate::typed::Typed;

pub(crate) fn validate_object(schema: &Typed, object: &Object) -> Vec<Error> {
    let mut errors = Vec::new();
    validate_fields(schema.types(), schema.root(), &object.cursor(), &mut errors);
    errors
}

fn validate_fields(types: &TypeSet, ty: &Type, cursor: &Cursor<'_>, errors: &mut Vec<Error>) {
    if !ty.has_rules {
        return;
    }
    for field in &ty.fields {
        let field_cursor = cursor.field(&field.name);
        check_rules(field, &field_cursor, errors);
        if field_cursor.is_present() {
            validate_nested(types, &field.ty, &field_cursor, errors);
        }
    }
}

fn validate_nested(types: &TypeSet, ty: &FieldType, cursor: &Cursor<'_>, errors: &mut Vec<Error>) {
    match types.resolve(ty) {
        FieldType::Ref(id) => validate_fields(types, types.get(*id), cursor, errors),
        FieldType::List(of) => cursor.items().for_each(|item| validate_nested(types, of, &item, errors)),
        FieldType::Map(of) => {
            cursor.entries().for_each(|(_, item)| validate_nested(types, of, &item, errors))
        }
        _ => {}
    }
}

fn check_rules(field: &Field, cursor: &Cursor<'_>, errors: &mut Vec<Error>) {
    let rules = &field.rules;
    let empty = !cursor.is_present()
        || (cursor.opt_str() == Some(""))
        || (is_collection(&field.ty) && cursor.is_empty());
    if empty {
        if rules.not_empty {
            errors.push(cursor.required(""));
        }
        return;
    }
    if rules.enumerated
        && let Some(text) = cursor.opt_str()
        && !field.enumeration.iter().any(|allowed| **allowed == *text)
    {
        let supported: Vec<&str> = field.enumeration.iter().map(AsRef::as_ref).collect();
        errors.push(cursor.not_supported(&supported));
    }
    if let Some(number) = cursor.i64() {
        check_range(rules.minimum, rules.maximum, number, cursor, errors);
    }
    if let Some(limit) = rules.max_length {
        check_length(limit, cursor, errors);
    }
}

fn is_collection(ty: &FieldType) -> bool {
    matches!(ty, FieldType::List(_) | FieldType::Map(_))
}

fn check_range(
    min: Option<i64>,
    max: Option<i64>,
    number: i64,
    cursor: &Cursor<'_>,
    errors: &mut Vec<Error>,
) {
    let text = match (min, max) {
        (Some(0), None) if number < 0 => "must be greater than or equal to 0".to_owned(),
        (Some(min), Some(max)) if !(min..=max).contains(&number) => {
            format!("must be between {min} and {max}, inclusive")
        }
        (Some(min), None) if number < min => format!("must be greater than or equal to {min}"),
        (None, Some(max)) if number > max => format!("must be less than or equal to {max}"),
        _ => return,
    };
    errors.push(cursor.invalid(&text));
}

fn check_length(limit: usize, cursor: &Cursor<'_>, errors: &mut Vec<Error>) {
    match cursor.opt_str() {
        Some(text) if text.len() > limit => errors.push(Error::too_long(&cursor.path(), limit)),
        None if cursor.len() > limit => errors.push(Error::too_many(&cursor.path(), cursor.len(), limit)),
        _ => {}
    }
}

pub(crate) fn validate_update(schema: &Typed, new: &Object, old: &Object) -> Vec<Error> {
    let mut errors = Vec::new();
    check_immutable_fields(schema.types(), schema.root(), &new.cursor(), &old.cursor(), &mut errors);
    errors
}

/// Checks immutable fields of nested structs. Elements of lists and maps have no identity here and are not compared.
fn check_immutable_fields(
    types: &TypeSet,
    ty: &Type,
    new: &Cursor<'_>,
    old: &Cursor<'_>,
    errors: &mut Vec<Error>,
) {
    if !ty.has_rules {
        return;
    }
    for field in &ty.fields {
        let (now, then) = (new.field(&field.name), old.field(&field.name));
        if field.rules.immutable && !now.same_as(&then) {
            errors.push(immutable_error(&now));
        }
        if let FieldType::Ref(id) = types.resolve(&field.ty) {
            check_immutable_fields(types, types.get(*id), &now, &then, errors);
        }
    }
}

fn immutable_error(cursor: &Cursor<'_>) -> Error {
    Error::invalid_printed(&Path::new(cursor.path().as_str()), &cursor.printed(), "field is immutable")
}
