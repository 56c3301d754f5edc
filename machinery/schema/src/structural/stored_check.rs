//! Check of stored bytes: if the schema would not change them, they are served without decoding.
//!
//! The walk follows the text without allocating values. It detects changes by pruning, nulls and defaults. Metadata of the
//! root has been normalized when it was written and is not checked.

use serde_json::Value;

use super::CustomResource;
use super::meta;
use super::model::{Additional, SchemaNode};
use super::prune::is_meta;
use crate::decode::{Reader, SyntaxError, ValueKind};

type Result<T> = std::result::Result<T, SyntaxError>;

impl CustomResource {
    /// Implements [`Schema::is_coerced_and_defaulted`](crate::Schema::is_coerced_and_defaulted). The bytes must have been written
    /// by this server: canonical, with typed metadata. Returns false for bytes that cannot be parsed.
    #[must_use]
    pub fn is_coerced_and_defaulted(&self, json: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(json) else { return false };
        let mut walk = StoredCheck { reader: Reader::for_stored(text), resource: self };
        let root = self.schema().root();
        matches!(walk.reader.peek_kind(), Ok(ValueKind::Object))
            && walk.fields(root, true, true, false).unwrap_or(false)
    }
}

struct StoredCheck<'t> {
    reader: Reader<'t>,
    resource: &'t CustomResource,
}

impl StoredCheck<'_> {
    /// Checks a value, with its schema if there is one; `preserved` as in pruning.
    fn value(&mut self, node: Option<&SchemaNode>, preserved: bool) -> Result<bool> {
        match (self.reader.peek_kind()?, node) {
            (ValueKind::Object, Some(node)) => self.fields(node, node.embedded, false, preserved),
            (ValueKind::Object, None) if !preserved => {
                self.reader.enter()?;
                Ok(self.reader.key(true)?.is_none())
            }
            (ValueKind::Array, Some(node)) => self.items(node, preserved || node.preserve_unknown),
            (ValueKind::Array, None) if !preserved => self.unknown_items(),
            _ => self.reader.skip().map(|()| true),
        }
    }

    fn items(&mut self, node: &SchemaNode, preserved: bool) -> Result<bool> {
        self.reader.enter()?;
        let mut first = true;
        while self.reader.element(first)? {
            first = false;
            let items = node.items.as_deref();
            let replaced = items.is_some_and(|items| !items.nullable && items.default.is_some());
            if (replaced && self.reader.peek_kind()? == ValueKind::Null) || !self.value(items, preserved)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn unknown_items(&mut self) -> Result<bool> {
        self.reader.enter()?;
        let mut first = true;
        while self.reader.element(first)? {
            first = false;
            if !self.value(None, false)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn fields(&mut self, node: &SchemaNode, is_object: bool, is_root: bool, preserved: bool) -> Result<bool> {
        self.reader.enter()?;
        let (mut first, mut defaulted) = (true, 0);
        while let Some(key) = self.reader.key(first)? {
            first = false;
            let named = node.property(&key);
            defaulted += usize::from(named.is_some_and(|child| child.default.is_some()));
            let is_unchanged = if is_object && is_meta(&key) {
                self.meta(&key, is_root)?
            } else {
                let child = named.or(node.additional.schema());
                let unknown = child.is_none() && node.additional == Additional::Absent;
                if unknown && !preserved && !node.preserve_unknown {
                    return Ok(false);
                }
                let null = self.reader.peek_kind()? == ValueKind::Null;
                let changes = null && child.is_some_and(|child| !child.nullable);
                !changes && self.value(child.map(|child| &**child), unknown)?
            };
            if !is_unchanged {
                return Ok(false);
            }
        }
        Ok(!node.subtree_flags.defaults
            || defaulted == node.properties.iter().filter(|(_, n)| n.default.is_some()).count())
    }

    /// Checks `apiVersion`, `kind` or `metadata`.
    fn meta(&mut self, key: &str, is_root: bool) -> Result<bool> {
        if is_root {
            return self.reader.skip().map(|()| true);
        }
        if key != "metadata" {
            let is_text = self.reader.peek_kind()? == ValueKind::String;
            return self.reader.skip().map(|()| is_text);
        }
        let value = self.reader.any()?;
        Ok(match &value {
            Value::Object(map) => {
                let read = meta::decode_metadata(self.resource.object_meta(), &value);
                read.error.is_none() && *map == read.map
            }
            // Values that are not objects are rejected by validation.
            value => !value.is_null(),
        })
    }
}
