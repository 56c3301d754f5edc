//! The objects of flow control that upstream makes for itself: mandatory ones, which nobody may change, and suggested
//! ones, which belong to whoever changes them.

use std::sync::LazyLock;

use portico_machinery::Object;
use serde_json::value::RawValue;

/// One of them.
#[derive(Debug)]
pub struct FlowObject {
    /// Whether its spec is fixed.
    pub mandatory: bool,
    /// The object, without what the server sets.
    pub object: Object,
}

impl FlowObject {
    /// Whether it is the object of this kind and name.
    #[must_use]
    pub fn is(&self, kind: &str, name: &str) -> bool {
        self.object.kind() == kind && self.object.name() == name
    }
}

/// All of them, in the order in which upstream makes them: suggested levels and schemas, then the mandatory ones.
#[must_use]
pub fn flow_objects() -> &'static [FlowObject] {
    static OBJECTS: LazyLock<Vec<FlowObject>> = LazyLock::new(read);
    &OBJECTS
}

fn read() -> Vec<FlowObject> {
    const MANDATORY: [&str; 2] = ["exempt", "catch-all"];
    // The data is ours; a test reads it.
    let list: Vec<&RawValue> = serde_json::from_str(include_str!("builtin.json")).unwrap_or_default();
    let objects = list.iter().filter_map(|raw| Object::from_json(raw.get().as_bytes()).ok());
    let mut objects: Vec<FlowObject> =
        objects.map(|object| FlowObject { mandatory: MANDATORY.contains(&object.name()), object }).collect();
    objects.sort_by_key(|o| (o.mandatory, o.object.kind() == "FlowSchema"));
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_there_levels_before_the_schemas_that_name_them() {
        let objects = flow_objects();
        let count = |kind: &str| objects.iter().filter(|o| o.object.kind() == kind).count();
        assert_eq!((count("FlowSchema"), count("PriorityLevelConfiguration")), (11, 8));
        assert_eq!(objects.iter().filter(|o| o.mandatory).count(), 4);
        for schema in objects.iter().filter(|o| o.object.kind() == "FlowSchema") {
            let level = schema.object.str_at("spec.priorityLevelConfiguration.name");
            assert!(objects.iter().any(|o| o.is("PriorityLevelConfiguration", level)), "{level}");
        }
    }
}
