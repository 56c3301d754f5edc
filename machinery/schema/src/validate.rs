//! Generic validation: the rules that the data states of single fields.

use portico_machinery::{Object, field};

use crate::schema::Schema;

pub(crate) fn object(schema: &Schema, object: &Object) -> Vec<field::Error> {
    let _ = (schema, object);
    Vec::new()
}

pub(crate) fn update(schema: &Schema, new: &Object, old: &Object) -> Vec<field::Error> {
    let _ = (schema, new, old);
    Vec::new()
}
