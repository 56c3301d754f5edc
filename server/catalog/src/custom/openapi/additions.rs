//! Additions to the schemas of definitions: fields of all objects, group, version and kind, and list types.

use std::collections::BTreeMap;

use portico_machinery::GroupVersionKind;
use serde_json::value::RawValue;

use super::phrases::Phrases;
use super::props::{Props, SelectableRef};
use crate::local::Kind;
use crate::local::openapi::{Dialect, KindRef, META};

/// A kind, with the properties that determine its types.
pub(super) struct Resource<'a> {
    pub kind: &'a Kind<'a>,
    /// Fields that selectors may use, without the leading dot.
    pub selectable: Vec<&'a str>,
    pub dialect: Dialect,
}

impl Resource<'_> {
    /// Returns the type of the kind. Without a schema, or with a version 2 schema that preserves unknown fields, the type lists no
    /// fields, because clients would assume that there are no others.
    pub fn complete<'a>(
        &self,
        schema: Option<Props<'a>>,
        preserves: bool,
        phrases: &'a Phrases,
    ) -> Props<'a> {
        let keeps =
            |schema: &Props<'_>| self.dialect == Dialect::V2 && (preserves || schema.preserves_unknown());
        let mut schema = match schema.filter(|schema| !keeps(schema)) {
            None => Props::of("object"),
            Some(mut schema) => {
                schema.unfold();
                if self.dialect == Dialect::V2 {
                    schema.reduce();
                }
                self.add_metadata(&mut schema, "ObjectMeta", &phrases.metadata);
                add_type(&mut schema, &phrases.api_version, &phrases.kind);
                self.add_embedded(&mut schema, phrases);
                schema
            }
        };
        schema.kinds = vec![KindRef::from(&self.kind.gvk)];
        schema.selectable = self.selectable();
        schema
    }

    /// Returns the type of the list.
    pub fn list<'a>(&self, phrases: &'a Phrases) -> Props<'a> {
        let item =
            Props { reference: Some(self.dialect.reference(&self.kind.type_name)), ..Props::default() };
        let items =
            Props { description: Some(&phrases.items), items: Some(Box::new(item)), ..Props::of("array") };
        let kind = GroupVersionKind { kind: self.kind.list_kind.to_owned(), ..self.kind.gvk.clone() };
        let mut list = Props {
            description: Some(&phrases.list),
            required: vec!["items".to_owned()],
            properties: BTreeMap::from([("items".to_owned(), items)]),
            kinds: vec![KindRef::from(&kind)],
            selectable: self.selectable(),
            ..Props::of("object")
        };
        self.add_metadata(&mut list, "ListMeta", &phrases.list_metadata);
        add_type(&mut list, &phrases.api_version, &phrases.kind);
        list
    }

    /// Adds the fields of all objects to embedded resources.
    fn add_embedded<'a>(&self, schema: &mut Props<'a>, phrases: &'a Phrases) {
        schema.below().for_each(|below| self.add_embedded(below, phrases));
        let is_open = self.dialect == Dialect::V2 && schema.preserves_unknown();
        if !schema.embedded || is_open {
            return;
        }
        add_type(schema, &phrases.embedded_api_version, &phrases.embedded_kind);
        self.add_metadata(schema, "ObjectMeta", &phrases.metadata);
        for name in ["kind", "apiVersion"] {
            if !schema.required.iter().any(|required| required == name) {
                schema.required.push(name.to_owned());
            }
        }
    }

    fn add_metadata<'a>(&self, schema: &mut Props<'a>, type_name: &str, about: &'a RawValue) {
        let reference = Some(self.dialect.reference(&format!("{META}{type_name}")));
        let described = Props { description: Some(about), ..Props::default() };
        let metadata = match self.dialect {
            Dialect::V2 => Props { reference, ..described },
            // Version 3 ignores all keys next to a reference, so the reference is wrapped.
            Dialect::V3 => Props { all_of: vec![Props { reference, ..Props::default() }], ..described },
        };
        schema.properties.insert("metadata".to_owned(), metadata);
    }

    fn selectable(&self) -> Vec<SelectableRef> {
        self.selectable.iter().map(|&path| SelectableRef { field_path: path.to_owned() }).collect()
    }
}

fn add_type<'a>(schema: &mut Props<'a>, api_version: &'a RawValue, kind: &'a RawValue) {
    for (name, about) in [("apiVersion", api_version), ("kind", kind)] {
        let field = Props { description: Some(about), ..Props::of("string") };
        schema.properties.insert(name.to_owned(), field);
    }
}
