//! Static defaults: values of absent fields as the type descriptions state them.

use portico_machinery::Object;
use serde_json::{Map, Value};

use crate::model::{Field, FieldType, Type, TypeSet};
use crate::typed::Typed;

pub(crate) fn default_object(schema: &Typed, object: &mut Object) {
    default_fields(schema.types(), schema.root(), object.map_mut());
}

fn default_fields(types: &TypeSet, ty: &Type, map: &mut Map<String, Value>) {
    if !ty.has_defaults {
        return;
    }
    for field in &ty.fields {
        if let Some(default) = &field.default
            && is_unset(field, map.get(&*field.name))
        {
            map.insert(field.name.to_string(), default.clone());
        }
        let field_type = types.resolve(&field.ty);
        if !has_nested_defaults(types, field_type) {
            continue;
        }
        if !field.emit.is_pointer() && matches!(field_type, FieldType::Ref(_)) {
            // A struct that is not a pointer always exists, even if the client omitted it.
            let slot = map.entry(&*field.name).or_insert_with(|| Value::Object(Map::new()));
            if slot.is_null() {
                *slot = Value::Object(Map::new());
            }
        }
        if let Some(value) = map.get_mut(&*field.name) {
            default_nested(types, field_type, value);
        }
    }
}

/// True if the field is absent, or zero where absent and zero are equivalent.
fn is_unset(field: &Field, value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(_) if field.emit.is_pointer() => false,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    }
}

fn has_nested_defaults(types: &TypeSet, ty: &FieldType) -> bool {
    match types.resolve(ty) {
        FieldType::Ref(id) => types.get(*id).has_defaults,
        FieldType::List(of) | FieldType::Map(of) => has_nested_defaults(types, of),
        _ => false,
    }
}

fn default_nested(types: &TypeSet, ty: &FieldType, value: &mut Value) {
    match (types.resolve(ty), value) {
        (FieldType::Ref(id), Value::Object(map)) => default_fields(types, types.get(*id), map),
        (FieldType::List(of), Value::Array(list)) => {
            for item in list {
                default_nested(types, of, item);
            }
        }
        (FieldType::Map(of), Value::Object(map)) => {
            for (_, item) in map {
                default_nested(types, of, item);
            }
        }
        _ => {}
    }
}
