//! Built-in objects of flow control: mandatory objects, which cannot be changed, and suggested objects, which users can
//! change.

use std::sync::LazyLock;

use portico_machinery::Object;
use serde_json::value::RawValue;

/// Built-in FlowSchema or PriorityLevelConfiguration.
#[derive(Debug)]
pub struct BuiltinFlowObject {
    /// True if the spec cannot be changed.
    pub mandatory: bool,
    /// Content of the object, without fields that the server sets.
    pub object: Object,
}

impl BuiltinFlowObject {
    /// True if the object has this kind and name.
    #[must_use]
    pub fn has_name(&self, kind: &str, name: &str) -> bool {
        self.object.kind() == kind && self.object.name() == name
    }
}

/// Returns all built-in objects in the order in which upstream creates them: suggested levels and schemas, then mandatory ones.
#[must_use]
pub fn builtin_flow_objects() -> &'static [BuiltinFlowObject] {
    static OBJECTS: LazyLock<Vec<BuiltinFlowObject>> = LazyLock::new(read);
    &OBJECTS
}

fn read() -> Vec<BuiltinFlowObject> {
    const MANDATORY: [&str; 2] = ["exempt", "catch-all"];
    // The data is compiled in and a test parses it.
    let list: Vec<&RawValue> = serde_json::from_str(include_str!("builtin.json")).unwrap_or_default();
    let objects = list.iter().filter_map(|raw| Object::from_json(raw.get().as_bytes()).ok());
    let mut objects: Vec<BuiltinFlowObject> = objects
        .map(|object| BuiltinFlowObject { mandatory: MANDATORY.contains(&object.name()), object })
        .collect();
    objects.sort_by_key(|o| (o.mandatory, o.object.kind() == "FlowSchema"));
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_precede_the_schemas_that_refer_to_them() {
        let objects = builtin_flow_objects();
        let count = |kind: &str| objects.iter().filter(|o| o.object.kind() == kind).count();
        assert_eq!((count("FlowSchema"), count("PriorityLevelConfiguration")), (11, 8));
        assert_eq!(objects.iter().filter(|o| o.mandatory).count(), 4);
        for schema in objects.iter().filter(|o| o.object.kind() == "FlowSchema") {
            let level = schema.object.str_at("spec.priorityLevelConfiguration.name");
            assert!(objects.iter().any(|o| o.has_name("PriorityLevelConfiguration", level)), "{level}");
        }
    }
}
