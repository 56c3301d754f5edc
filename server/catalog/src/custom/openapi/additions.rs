//! Additions to the schemas of definitions: fields of all objects, group, version and kind, and list types.

use std::collections::BTreeMap;

use portico_machinery::GroupVersionKind;
use serde_json::value::RawValue;

use super::common_descriptions::CommonDescriptions;
use super::schema_props::{SchemaProps, SelectableRef};
use crate::local::KindDescription;
use crate::local::openapi::{Dialect, KindRef, META_PREFIX};

/// A kind, with the properties that determine its types.
pub(super) struct KindTypes<'a> {
    pub kind: &'a KindDescription<'a>,
    /// Fields that selectors may use, without the leading dot.
    pub selectable: Vec<&'a str>,
    pub dialect: Dialect,
}

impl KindTypes<'_> {
    /// Returns the type of the kind. Without a schema, or with a version 2 schema that preserves unknown fields, the type lists no
    /// fields, because clients would assume that there are no others.
    pub fn type_schema<'a>(
        &self,
        schema: Option<SchemaProps<'a>>,
        preserves_unknown: bool,
        descriptions: &'a CommonDescriptions,
    ) -> SchemaProps<'a> {
        let is_open = |schema: &SchemaProps<'_>| {
            self.dialect == Dialect::V2 && (preserves_unknown || schema.preserves_unknown())
        };
        let mut schema = match schema.filter(|schema| !is_open(schema)) {
            None => SchemaProps::of_type("object"),
            Some(mut schema) => {
                schema.unfold();
                if self.dialect == Dialect::V2 {
                    schema.reduce_to_v2();
                }
                self.add_metadata(&mut schema, "ObjectMeta", &descriptions.metadata);
                add_type(&mut schema, &descriptions.api_version, &descriptions.kind);
                self.add_embedded(&mut schema, descriptions);
                schema
            }
        };
        schema.kinds = vec![KindRef::from(&self.kind.gvk)];
        schema.selectable = self.selectable();
        schema
    }

    /// Returns the type of the list.
    pub fn list_schema<'a>(&self, descriptions: &'a CommonDescriptions) -> SchemaProps<'a> {
        let item = SchemaProps {
            reference: Some(self.dialect.reference(&self.kind.type_name)),
            ..SchemaProps::default()
        };
        let items = SchemaProps {
            description: Some(&descriptions.items),
            items: Some(Box::new(item)),
            ..SchemaProps::of_type("array")
        };
        let kind = GroupVersionKind { kind: self.kind.list_kind.to_owned(), ..self.kind.gvk.clone() };
        let mut list = SchemaProps {
            description: Some(&descriptions.list),
            required: vec!["items".to_owned()],
            properties: BTreeMap::from([("items".to_owned(), items)]),
            kinds: vec![KindRef::from(&kind)],
            selectable: self.selectable(),
            ..SchemaProps::of_type("object")
        };
        self.add_metadata(&mut list, "ListMeta", &descriptions.list_metadata);
        add_type(&mut list, &descriptions.api_version, &descriptions.kind);
        list
    }

    /// Adds the fields of all objects to embedded resources.
    fn add_embedded<'a>(&self, schema: &mut SchemaProps<'a>, descriptions: &'a CommonDescriptions) {
        schema.subschemas().for_each(|subschema| self.add_embedded(subschema, descriptions));
        let is_open = self.dialect == Dialect::V2 && schema.preserves_unknown();
        if !schema.embedded || is_open {
            return;
        }
        add_type(schema, &descriptions.embedded_api_version, &descriptions.embedded_kind);
        self.add_metadata(schema, "ObjectMeta", &descriptions.metadata);
        for name in ["kind", "apiVersion"] {
            if !schema.required.iter().any(|required| required == name) {
                schema.required.push(name.to_owned());
            }
        }
    }

    fn add_metadata<'a>(&self, schema: &mut SchemaProps<'a>, type_name: &str, description: &'a RawValue) {
        let reference = Some(self.dialect.reference(&format!("{META_PREFIX}{type_name}")));
        let with_description = SchemaProps { description: Some(description), ..SchemaProps::default() };
        let metadata = match self.dialect {
            Dialect::V2 => SchemaProps { reference, ..with_description },
            // Version 3 ignores all keys next to a reference, so the reference is wrapped.
            Dialect::V3 => SchemaProps {
                all_of: vec![SchemaProps { reference, ..SchemaProps::default() }],
                ..with_description
            },
        };
        schema.properties.insert("metadata".to_owned(), metadata);
    }

    fn selectable(&self) -> Vec<SelectableRef> {
        self.selectable.iter().map(|&path| SelectableRef { field_path: path.to_owned() }).collect()
    }
}

fn add_type<'a>(schema: &mut SchemaProps<'a>, api_version: &'a RawValue, kind: &'a RawValue) {
    for (name, description) in [("apiVersion", api_version), ("kind", kind)] {
        let field = SchemaProps { description: Some(description), ..SchemaProps::of_type("string") };
        schema.properties.insert(name.to_owned(), field);
    }
}
