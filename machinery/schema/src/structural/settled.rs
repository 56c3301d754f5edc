//! Check of stored bytes: if the schema would not change them, they are served without decoding.
//!
//! The walk follows the text without allocating values. It detects changes by pruning, nulls and defaults. Metadata of the
//! root has been normalized when it was written and is not checked.

use serde_json::Value;

use super::CustomResource;
use super::meta;
use super::model::{Additional, Node};
use super::prune::is_meta;
use crate::decode::{Reader, Start, SyntaxError};

type Result<T> = std::result::Result<T, SyntaxError>;

impl CustomResource {
    /// Implements [`Schema::is_coerced_and_defaulted`](crate::Schema::is_coerced_and_defaulted). The bytes must have been written
    /// by this server: canonical, with typed metadata. Returns false for bytes that cannot be parsed.
    #[must_use]
    pub fn is_settled(&self, json: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(json) else { return false };
        let mut walk = Walk { reader: Reader::stored(text), resource: self };
        let root = self.schema().root();
        matches!(walk.reader.start(), Ok(Start::Object))
            && walk.fields(root, true, true, false).unwrap_or(false)
    }
}

struct Walk<'t> {
    reader: Reader<'t>,
    resource: &'t CustomResource,
}

impl Walk<'_> {
    /// Checks a value, with its schema if there is one; `kept` as in pruning.
    fn value(&mut self, node: Option<&Node>, kept: bool) -> Result<bool> {
        match (self.reader.start()?, node) {
            (Start::Object, Some(node)) => self.fields(node, node.embedded, false, kept),
            (Start::Object, None) if !kept => {
                self.reader.enter()?;
                Ok(self.reader.key(true)?.is_none())
            }
            (Start::Array, Some(node)) => self.items(node, kept || node.preserve_unknown),
            (Start::Array, None) if !kept => self.unknown_items(),
            _ => self.reader.skip().map(|()| true),
        }
    }

    fn items(&mut self, node: &Node, kept: bool) -> Result<bool> {
        self.reader.enter()?;
        let mut first = true;
        while self.reader.element(first)? {
            first = false;
            let items = node.items.as_deref();
            let replaced = items.is_some_and(|items| !items.nullable && items.default.is_some());
            if (replaced && self.reader.start()? == Start::Null) || !self.value(items, kept)? {
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

    fn fields(&mut self, node: &Node, is_object: bool, is_root: bool, kept: bool) -> Result<bool> {
        self.reader.enter()?;
        let (mut first, mut defaulted) = (true, 0);
        while let Some(key) = self.reader.key(first)? {
            first = false;
            let named = node.property(&key);
            defaulted += usize::from(named.is_some_and(|below| below.default.is_some()));
            let settled = if is_object && is_meta(&key) {
                self.meta(&key, is_root)?
            } else {
                let below = named.or(node.additional.schema());
                let unknown = below.is_none() && node.additional == Additional::Absent;
                if unknown && !kept && !node.preserve_unknown {
                    return Ok(false);
                }
                let null = self.reader.start()? == Start::Null;
                let changes = null && below.is_some_and(|below| !below.nullable);
                !changes && self.value(below.map(|below| &**below), unknown)?
            };
            if !settled {
                return Ok(false);
            }
        }
        Ok(!node.marks.defaults
            || defaulted == node.properties.iter().filter(|(_, n)| n.default.is_some()).count())
    }

    /// Checks `apiVersion`, `kind` or `metadata`.
    fn meta(&mut self, key: &str, is_root: bool) -> Result<bool> {
        if is_root {
            return self.reader.skip().map(|()| true);
        }
        if key != "metadata" {
            let is_text = self.reader.start()? == Start::String;
            return self.reader.skip().map(|()| is_text);
        }
        let held = self.reader.any()?;
        Ok(match &held {
            Value::Object(map) => {
                let read = meta::read(self.resource.object_meta(), &held);
                read.error.is_none() && *map == read.map
            }
            // Values that are not objects are rejected by validation.
            held => !held.is_null(),
        })
    }
}
