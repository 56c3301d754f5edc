//! Walk over all nodes of a schema.

use serde_json::Value;

use super::props::{Additional, Items, Props, entries};

/// Visits every node, including those at positions where schemas are rejected.
pub(super) fn visit<'a>(schema: &'a Value, visitor: &mut impl FnMut(&Props<'a>)) {
    let props = Props::of(schema);
    visitor(&props);
    match props.items {
        Some(Items::One(schema)) => visit(schema, visitor),
        Some(Items::Many(schemas)) => schemas.iter().for_each(|schema| visit(schema, visitor)),
        None => {}
    }
    let logical_operators = [props.all_of, props.any_of, props.one_of].into_iter().flatten();
    logical_operators.chain(props.not).for_each(|schema| visit(schema, visitor));
    props.properties().for_each(|(_, schema)| visit(schema, visitor));
    let mut additional = |additional| {
        if let Some(Additional::Schema(schema)) = additional {
            visit(schema, visitor);
        }
    };
    additional(props.additional);
    additional(props.additional_items);
    let rare = [props.pattern_properties, props.definitions, props.dependencies];
    let rare = rare.into_iter().flat_map(entries).filter(|(_, schema)| schema.is_object());
    rare.for_each(|(_, schema)| visit(schema, visitor));
}
