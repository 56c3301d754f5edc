//! Adapts structural schemas to the two versions of OpenAPI.
//!
//! Upstream's rules: values that are integers or strings list both types (`Unfold`); version 2 omits what it cannot express
//! (`ToStructuralOpenAPIV2`), and defaults.

use super::schema_props::{AdditionalProperties, SchemaProps};

impl SchemaProps<'_> {
    /// Adds the alternatives integer and string to values that may be either, unless the schema lists them.
    pub fn unfold(&mut self) {
        if self.int_or_string
            && !is_integer_or_string(&self.any_of)
            && !self.all_of.first().is_some_and(|f| is_integer_or_string(&f.any_of))
        {
            let either = vec![SchemaProps::of_type("integer"), SchemaProps::of_type("string")];
            if self.any_of.is_empty() {
                self.any_of = either;
            } else {
                self.all_of.insert(0, SchemaProps { any_of: either, ..SchemaProps::default() });
            }
        }
        self.subschemas().for_each(SchemaProps::unfold);
    }

    /// Removes parts that version 2 cannot express or that kubectl mishandles there.
    pub fn reduce_to_v2(&mut self) {
        self.default = None;
        self.all_of.clear();
        self.one_of.clear();
        self.any_of.clear();
        self.not = None;
        if self.nullable || self.preserves_unknown() {
            self.items = None;
            self.properties.clear();
        }
        if std::mem::take(&mut self.nullable) {
            self.kind = None;
        }
        let lacks_items = self.items.is_none() && self.kind == Some("array");
        if lacks_items || (self.preserves_unknown() && self.kind == Some("object")) {
            self.kind = None;
        }
        let Self { required, properties, .. } = self;
        required.retain(|name| !properties.get(name).is_some_and(|property| property.nullable));
        if matches!(&self.additional_properties, Some(AdditionalProperties::Schema(schema)) if schema.nullable)
        {
            self.required.clear();
        }
        self.subschemas().for_each(SchemaProps::reduce_to_v2);
    }
}

/// Returns true if these are exactly the alternatives integer and string.
fn is_integer_or_string(alternatives: &[SchemaProps<'_>]) -> bool {
    let kinds = alternatives.iter().map(|alternative| alternative.kind);
    kinds.eq([Some("integer"), Some("string")])
}
