//! Path of a rule's error: its `fieldPath`, resolved against the schema.

use portico_machinery::field::Path;

use crate::structural::definition::field_path::{Tokens, quoted};
use crate::structural::model::Node;

/// Converts a `fieldPath` to the notation of field errors. Returns `None` if it does not resolve.
pub(super) fn normalise(text: &str, node: &Node) -> Option<String> {
    let (mut path, mut at) = (Path::root(), Some(node));
    let mut tokens = Tokens(text);
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next()?.to_owned(),
            "[" => quoted(tokens.next()?).ok()?,
            _ => return None,
        };
        let node = at?;
        (path, at) = if node.properties.is_empty() {
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
