//! Static defaults: what the data says an absent field holds.

use portico_machinery::Object;

use crate::schema::Schema;

pub(crate) fn object(schema: &Schema, object: &mut Object) {
    let _ = (schema, object);
}
