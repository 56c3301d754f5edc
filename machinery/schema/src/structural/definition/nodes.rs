//! Rules for each node, independent of its position.

use serde_json::Value;

use super::errors::Errors;
use super::props::{Additional, Items, Props, entries};
use super::requirements::Requirements;
use super::{lists, rules};
use crate::structural::location::Location;

/// Types of OpenAPI v3.
pub(super) const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Context of a node.
#[derive(Clone, Copy, Default)]
struct NodeContext<'a> {
    /// Reason why defaults are not allowed at this node.
    no_defaults: Option<NoDefaults<'a>>,
    /// True below `apiVersion`, `kind` or `metadata` of an object.
    in_meta: bool,
}

#[derive(Clone, Copy)]
enum NoDefaults<'a> {
    TopLevel(&'a str),
    AdditionalMetadata,
}

pub(super) fn validate(
    schema: &Value,
    location: &Location<'_>,
    requirements: &Requirements,
    errors: &mut Errors,
) {
    NodeValidator { requirements, errors }.node(schema, location, NodeContext::default(), true);
}

struct NodeValidator<'t, 'e> {
    requirements: &'t Requirements,
    errors: &'e mut Errors,
}

impl NodeValidator<'_, '_> {
    fn node(&mut self, schema: &Value, location: &Location<'_>, context: NodeContext<'_>, root: bool) {
        let props = Props::of(schema);
        self.members(&props, location, context);
        if props.unique_items {
            let text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            location.field("uniqueItems").forbidden(text, self.errors);
        }
        self.additional(&props, location, context);
        self.properties(&props, location, context, root);
        self.logical_operators(&props, location, context);
        self.uncommon_members(&props, location, context);
        if props.preserve_unknown == Some(false) {
            let field_location = location.field("x-kubernetes-preserve-unknown-fields");
            field_location.invalid_printed("false", "must be true or undefined", self.errors);
        }
        lists::validate(&props, location, self.requirements, self.errors);
        rules::validate(schema, &props, location, self.errors);
    }

    /// Rejects members that definitions do not support, and invalid values of members.
    fn members(&mut self, props: &Props<'_>, location: &Location<'_>, context: NodeContext<'_>) {
        if self.requirements.known_types && !props.ty.is_empty() && !TYPES.contains(&props.ty) {
            location.field("type").not_supported(props.ty, &TYPES, self.errors);
        }
        if let (Some(_), Some(reason)) = (props.default, context.no_defaults) {
            let text = match reason {
                NoDefaults::TopLevel(name) => format!("must not be set in top-level {name}"),
                NoDefaults::AdditionalMetadata => {
                    "must not be set inside additionalProperties applying to object metadata".to_owned()
                }
            };
            location.field("default").forbidden(&text, self.errors);
        }
        let unsupported = [
            (!props.id.is_empty(), "id"),
            (props.additional_items.is_some(), "additionalItems"),
            (props.pattern_properties.is_some(), "patternProperties"),
            (props.definitions.is_some(), "definitions"),
            (props.dependencies.is_some(), "dependencies"),
            (props.reference.is_some(), "$ref"),
        ];
        for (_, name) in unsupported.into_iter().filter(|(is_present, _)| *is_present) {
            location.field(name).forbidden(&format!("{name} is not supported"), self.errors);
        }
        if props.ty == "null" {
            let text = "type cannot be set to null, use nullable as an alternative";
            location.field("type").forbidden(text, self.errors);
        }
        if matches!(props.items, Some(Items::Many(list)) if !list.is_empty()) {
            location.field("items").forbidden("items must be a schema object and not an array", self.errors);
        }
        if context.in_meta && props.embedded {
            let text = "must not be used inside of resource meta";
            location.field("x-kubernetes-embedded-resource").forbidden(text, self.errors);
        }
    }

    fn additional(&mut self, props: &Props<'_>, location: &Location<'_>, context: NodeContext<'_>) {
        let Some(additional) = props.additional else { return };
        let field_location = location.field("additionalProperties");
        if props.properties.is_some() && !matches!(additional, Additional::Allowed(true)) {
            field_location.forbidden("additionalProperties and properties are mutual exclusive", self.errors);
        }
        if let Additional::Schema(schema) = additional {
            // Pruning of a default depends on the key, which is unknown.
            let no_defaults =
                if context.in_meta { Some(NoDefaults::AdditionalMetadata) } else { context.no_defaults };
            self.node(schema, &field_location, NodeContext { no_defaults, ..context }, false);
        }
    }

    fn properties(
        &mut self,
        props: &Props<'_>,
        location: &Location<'_>,
        context: NodeContext<'_>,
        root: bool,
    ) {
        let field_location = location.field("properties");
        for (name, schema) in props.properties() {
            let mut child_context = context;
            if (root || props.embedded) && matches!(name, "metadata" | "kind" | "apiVersion") {
                child_context.in_meta = true;
                if root {
                    child_context.no_defaults = Some(NoDefaults::TopLevel(name));
                }
            }
            self.node(schema, &field_location.key(name), child_context, false);
        }
    }

    fn logical_operators(&mut self, props: &Props<'_>, location: &Location<'_>, context: NodeContext<'_>) {
        if let Some(schema) = props.not {
            self.node(schema, &location.field("not"), context, false);
        }
        for (name, schemas) in [("allOf", props.all_of), ("oneOf", props.one_of), ("anyOf", props.any_of)] {
            self.node_list(schemas, &location.field(name), context);
        }
    }

    /// Validates definitions, items and dependencies.
    fn uncommon_members(&mut self, props: &Props<'_>, location: &Location<'_>, context: NodeContext<'_>) {
        let definitions = location.field("definitions");
        for (name, schema) in entries(props.definitions) {
            self.node(schema, &definitions.key(name), context, false);
        }
        match props.items {
            Some(Items::One(schema)) => self.node(schema, &location.field("items"), context, false),
            Some(Items::Many(schemas)) => self.node_list(schemas, &location.field("items"), context),
            None => {}
        }
        let dependencies = location.field("dependencies");
        for (name, schema) in entries(props.dependencies).filter(|(_, schema)| schema.is_object()) {
            self.node(schema, &dependencies.key(name), context, false);
        }
    }

    fn node_list(&mut self, schemas: &[Value], location: &Location<'_>, context: NodeContext<'_>) {
        for (index, schema) in schemas.iter().enumerate() {
            self.node(schema, &location.index(index), context, false);
        }
    }
}
