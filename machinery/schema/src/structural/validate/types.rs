//! Types: checks the type of a value, and formats paths for errors.

use portico_machinery::field::Path;

use super::float;
use super::outcome::Outcome;
use super::view::View;
use super::{SchemaNode, Validator};
use crate::structural::model::JsonType;

fn accepts(node: &SchemaNode, ty: JsonType) -> bool {
    match node.ty {
        _ if node.int_or_string => matches!(ty, JsonType::Integer | JsonType::String),
        node_type => node_type == Some(ty),
    }
}

impl Validator<'_> {
    /// Returns the types of a node as errors print them, empty for any.
    pub(super) fn type_names(&self, node: &SchemaNode) -> &'static str {
        match node.ty {
            _ if node.int_or_string && !self.is_default => "integer,string",
            Some(ty) => ty.as_str(),
            None => "",
        }
    }

    /// Checks the type of a value that is not null. As upstream, strings and lists always pass if there is a format, unless the
    /// type is a number type; the format itself validates strings.
    pub(super) fn check_type(&self, view: View<'_>, node: &SchemaNode, out: &mut Outcome) {
        let format = node.checks.as_ref().and_then(|checks| checks.format.as_ref());
        if self.type_names(node).is_empty() && format.is_none() {
            return;
        }
        out.add_matches(1);
        let (ty, found) = type_and_format(view);
        let as_number = match view {
            View::Number(number) if number.is_f64() => {
                accepts(node, JsonType::Integer) && number.as_f64().is_some_and(float::is_integral)
            }
            View::Number(_) => accepts(node, JsonType::Number),
            _ => false,
        };
        let fits = accepts(node, ty) || as_number;
        let textual = matches!(view, View::String(_) | View::Array(_));
        if let Some(format) = format {
            if !textual && !fits {
                self.type_error(&format.name, found, out);
                return;
            }
            let numeric = accepts(node, JsonType::Number) || accepts(node, JsonType::Integer);
            if textual && !numeric {
                out.add_matches(1);
                return;
            }
        }
        if fits {
            out.add_matches(1);
        } else {
            self.type_error(self.type_names(node), ty.as_str(), out);
        }
    }

    /// Returns the current path as a field path.
    pub(super) fn field_path(&self) -> Path {
        self.field_path_of(&self.path)
    }

    /// Converts a path of messages to a field path: upstream prints `<nil>` for the whole object.
    pub(super) fn field_path_of(&self, path: &str) -> Path {
        let path = path.strip_prefix('.').unwrap_or(path);
        match (self.prefix, path) {
            ("", "") => Path::new("<nil>"),
            ("", path) => Path::new(path),
            (prefix, "") => Path::new(prefix),
            (prefix, path) => Path::new(prefix).child(path),
        }
    }
}

/// Returns the type of a value, and the format that upstream assigns to numbers.
fn type_and_format(view: View<'_>) -> (JsonType, &'static str) {
    match view {
        View::Bool(_) => (JsonType::Boolean, ""),
        View::Number(number) if number.is_f64() => (JsonType::Number, "float64"),
        View::Number(_) => (JsonType::Integer, "int64"),
        View::String(_) => (JsonType::String, ""),
        View::Array(_) => (JsonType::Array, ""),
        View::Null | View::Object(_) => (JsonType::Object, ""),
    }
}
