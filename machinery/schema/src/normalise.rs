//! Canonical form: field order, emit rules, canonical times.

use portico_machinery::Object;

use crate::schema::Schema;

pub(crate) fn object(schema: &Schema, object: &mut Object) {
    let _ = (schema, object);
}
