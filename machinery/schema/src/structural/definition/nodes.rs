//! Rules for each node, independent of its position.

use serde_json::Value;

use super::errors::Errors;
use super::props::{Additional, Items, Props, entries};
use super::terms::Terms;
use super::{lists, rules};
use crate::structural::at::At;

/// Types of OpenAPI v3.
pub(super) const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Context of a node.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
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

pub(super) fn validate(schema: &Value, at: &At<'_>, terms: &Terms, errors: &mut Errors) {
    Nodes { terms, errors }.node(schema, at, Around::default(), true);
}

struct Nodes<'t, 'e> {
    terms: &'t Terms,
    errors: &'e mut Errors,
}

impl Nodes<'_, '_> {
    fn node(&mut self, schema: &Value, at: &At<'_>, around: Around<'_>, root: bool) {
        let props = Props::of(schema);
        self.members(&props, at, around);
        if props.unique_items {
            let text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            at.field("uniqueItems").forbidden(text, self.errors);
        }
        self.additional(&props, at, around);
        self.properties(&props, at, around, root);
        self.logical_operators(&props, at, around);
        self.rare(&props, at, around);
        if props.preserve_unknown == Some(false) {
            let here = at.field("x-kubernetes-preserve-unknown-fields");
            here.invalid_printed("false", "must be true or undefined", self.errors);
        }
        lists::validate(&props, at, self.terms, self.errors);
        rules::validate(schema, &props, at, self.errors);
    }

    /// Rejects members that definitions do not support, and invalid values of members.
    fn members(&mut self, props: &Props<'_>, at: &At<'_>, around: Around<'_>) {
        if self.terms.known_types && !props.ty.is_empty() && !TYPES.contains(&props.ty) {
            at.field("type").not_supported(props.ty, &TYPES, self.errors);
        }
        if let (Some(_), Some(why)) = (props.default, around.no_defaults) {
            let text = match why {
                NoDefaults::TopLevel(name) => format!("must not be set in top-level {name}"),
                NoDefaults::AdditionalMetadata => {
                    "must not be set inside additionalProperties applying to object metadata".to_owned()
                }
            };
            at.field("default").forbidden(&text, self.errors);
        }
        let unsupported = [
            (!props.id.is_empty(), "id"),
            (props.additional_items.is_some(), "additionalItems"),
            (props.pattern_properties.is_some(), "patternProperties"),
            (props.definitions.is_some(), "definitions"),
            (props.dependencies.is_some(), "dependencies"),
            (props.reference.is_some(), "$ref"),
        ];
        for (_, name) in unsupported.into_iter().filter(|(there, _)| *there) {
            at.field(name).forbidden(&format!("{name} is not supported"), self.errors);
        }
        if props.ty == "null" {
            let text = "type cannot be set to null, use nullable as an alternative";
            at.field("type").forbidden(text, self.errors);
        }
        if matches!(props.items, Some(Items::Many(list)) if !list.is_empty()) {
            at.field("items").forbidden("items must be a schema object and not an array", self.errors);
        }
        if around.in_meta && props.embedded {
            let text = "must not be used inside of resource meta";
            at.field("x-kubernetes-embedded-resource").forbidden(text, self.errors);
        }
    }

    fn additional(&mut self, props: &Props<'_>, at: &At<'_>, around: Around<'_>) {
        let Some(additional) = props.additional else { return };
        let here = at.field("additionalProperties");
        if props.properties.is_some() && !matches!(additional, Additional::Allowed(true)) {
            here.forbidden("additionalProperties and properties are mutual exclusive", self.errors);
        }
        if let Additional::Schema(schema) = additional {
            // Pruning of a default depends on the key, which is unknown.
            let no_defaults =
                if around.in_meta { Some(NoDefaults::AdditionalMetadata) } else { around.no_defaults };
            self.node(schema, &here, Around { no_defaults, ..around }, false);
        }
    }

    fn properties(&mut self, props: &Props<'_>, at: &At<'_>, around: Around<'_>, root: bool) {
        let here = at.field("properties");
        for (name, schema) in props.properties() {
            let mut inside = around;
            if (root || props.embedded) && matches!(name, "metadata" | "kind" | "apiVersion") {
                inside.in_meta = true;
                if root {
                    inside.no_defaults = Some(NoDefaults::TopLevel(name));
                }
            }
            self.node(schema, &here.key(name), inside, false);
        }
    }

    fn logical_operators(&mut self, props: &Props<'_>, at: &At<'_>, around: Around<'_>) {
        if let Some(schema) = props.not {
            self.node(schema, &at.field("not"), around, false);
        }
        for (name, schemas) in [("allOf", props.all_of), ("oneOf", props.one_of), ("anyOf", props.any_of)] {
            self.each(schemas, &at.field(name), around);
        }
    }

    /// Validates definitions, items and dependencies.
    fn rare(&mut self, props: &Props<'_>, at: &At<'_>, around: Around<'_>) {
        let definitions = at.field("definitions");
        for (name, schema) in entries(props.definitions) {
            self.node(schema, &definitions.key(name), around, false);
        }
        match props.items {
            Some(Items::One(schema)) => self.node(schema, &at.field("items"), around, false),
            Some(Items::Many(schemas)) => self.each(schemas, &at.field("items"), around),
            None => {}
        }
        let dependencies = at.field("dependencies");
        for (name, schema) in entries(props.dependencies).filter(|(_, schema)| schema.is_object()) {
            self.node(schema, &dependencies.key(name), around, false);
        }
    }

    fn each(&mut self, schemas: &[Value], at: &At<'_>, around: Around<'_>) {
        for (index, schema) in schemas.iter().enumerate() {
            self.node(schema, &at.index(index), around, false);
        }
    }
}
