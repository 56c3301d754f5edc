//! Selectable fields of custom resources, read from the object because they are not indexed.

use std::collections::HashMap;

use portico_machinery::Cursor;
use portico_machinery::selector::FieldSelector;
use portico_store::Record;

use crate::stored_object;

/// Values of the fields in a selector; absent fields are empty.
pub(crate) fn field_values(record: &Record, selector: &FieldSelector) -> HashMap<String, String> {
    let object = stored_object::decode(record);
    let fields = selector.terms().iter().map(|term| term.field.as_str());
    fields
        .map(|field| {
            let found = field.split('.').fold(object.cursor(), |cursor, name| cursor.field(name));
            (field.to_owned(), text(&found))
        })
        .collect()
}

/// Text of a string, number or boolean.
fn text(value: &Cursor<'_>) -> String {
    let number = || value.i64().map(|number| number.to_string());
    let boolean = || value.opt_bool().map(|truth| truth.to_string());
    value.opt_str().map(str::to_owned).or_else(number).or_else(boolean).unwrap_or_default()
}
