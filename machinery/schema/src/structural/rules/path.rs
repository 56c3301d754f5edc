//! Path of a rule's error: its `fieldPath`, resolved against the schema.

use portico_machinery::field::Path;

use crate::structural::definition::field_path::{Tokens, unquote};
use crate::structural::model::SchemaNode;

/// Converts a `fieldPath` to the notation of field errors. Returns `None` if it does not resolve.
pub(super) fn normalize(text: &str, node: &SchemaNode) -> Option<String> {
    let (mut path, mut node_at_path) = (Path::root(), Some(node));
    let mut tokens = Tokens(text);
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next()?.to_owned(),
            "[" => unquote(tokens.next()?).ok()?,
            _ => return None,
        };
        let node = node_at_path?;
        (path, node_at_path) = if node.properties.is_empty() {
            (path.key(&name), Some(&**node.additional.schema()?))
        } else {
            (path.child(&name), Some(&**node.property(&name)?))
        };
        if token == "[" && tokens.next()? != "]" {
            return None;
        }
    }
    Some(path.as_str().to_owned())
}
