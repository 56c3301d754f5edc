//! Declared types: what a schema says of JSON that expressions look at.
//!
//! One description serves three purposes: the checker asks for fields and types, the cost estimate for the most
//! elements, the evaluator how to read JSON. Who knows a schema builds these; this room knows none.

use std::sync::Arc;

use crate::Type;
use crate::types::ObjectType;

/// What a schema says of one value. Immutable and shared.
#[derive(Debug)]
pub struct DeclType {
    /// What it is.
    pub kind: DeclKind,
    /// What the checker calls it.
    pub ty: Type,
    /// Whether null may stand here; it is then CEL's null.
    pub nullable: bool,
    /// Most items, entries, or bytes of text; what an estimate takes it for.
    pub max_elements: u64,
    /// Least bytes that it takes in JSON: how often it fits into one request.
    pub min_serialized_size: u64,
}

/// How JSON is read.
#[derive(Debug)]
pub enum DeclKind {
    /// Any JSON as it is: numbers without a fraction are integers.
    Dyn,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
    /// A boolean.
    Bool,
    /// An integer.
    Int,
    /// A number, with or without a fraction.
    Double,
    /// Text.
    String,
    /// Text in base64.
    Bytes,
    /// Text that is a day, `2006-01-02`.
    Date,
    /// Text that is a point in time.
    DateTime,
    /// Text that is a span of time.
    Duration,
    /// An array.
    List {
        /// What is in it.
        items: Arc<DeclType>,
        /// What tells its items apart.
        kind: ListKind,
    },
    /// An object whose members are all alike.
    Map {
        /// What the members are.
        values: Arc<DeclType>,
    },
    /// An object with fields.
    Object(Arc<ObjectType>),
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// One value as a whole.
    Atomic,
    /// In any order, each once.
    Set,
    /// In any order, told apart by these properties.
    Map(Box<[Arc<str>]>),
}

/// A field of a declared object.
#[derive(Clone, Debug)]
pub struct Field {
    /// How JSON spells it.
    pub name: Arc<str>,
    /// How expressions spell it: see [`escape`].
    pub escaped: Arc<str>,
    /// What it holds.
    pub of: Arc<DeclType>,
}

static DYN: DeclType = DeclType {
    kind: DeclKind::Dyn,
    ty: Type::Dyn,
    nullable: true,
    max_elements: u64::MAX,
    min_serialized_size: 1,
};

impl DeclType {
    /// A scalar of this kind.
    #[must_use]
    pub fn scalar(kind: DeclKind, max_elements: u64, min_serialized_size: u64) -> Self {
        let ty = match kind {
            DeclKind::Bool => Type::Bool,
            DeclKind::Int => Type::Int,
            DeclKind::Double => Type::Double,
            DeclKind::String => Type::String,
            DeclKind::Bytes => Type::Bytes,
            DeclKind::Date | DeclKind::DateTime => Type::Timestamp,
            DeclKind::Duration => Type::Duration,
            _ => Type::Dyn,
        };
        Self { kind, ty, nullable: false, max_elements, min_serialized_size }
    }

    /// A list.
    #[must_use]
    pub fn list(items: Arc<DeclType>, kind: ListKind, max_elements: u64) -> Self {
        let ty = Type::list(items.ty.clone());
        Self {
            kind: DeclKind::List { items, kind },
            ty,
            nullable: false,
            max_elements,
            min_serialized_size: 2,
        }
    }

    /// A map with keys of text.
    #[must_use]
    pub fn map(values: Arc<DeclType>, max_elements: u64) -> Self {
        let ty = Type::map(Type::String, values.ty.clone());
        Self { kind: DeclKind::Map { values }, ty, nullable: false, max_elements, min_serialized_size: 2 }
    }

    /// An object with fields; `name` is how messages call it.
    #[must_use]
    pub fn object(name: &str, mut fields: Vec<Field>, min_serialized_size: u64) -> Self {
        fields.sort_by(|one, two| one.escaped.cmp(&two.escaped));
        let object = Arc::new(ObjectType { name: Arc::from(name), fields: fields.into() });
        let ty = Type::Object(object.clone());
        Self { kind: DeclKind::Object(object), ty, nullable: false, max_elements: 0, min_serialized_size }
    }

    /// Any JSON.
    #[must_use]
    pub fn dynamic() -> &'static Self {
        &DYN
    }

    /// Whether more is known than that it is JSON.
    #[must_use]
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.kind, DeclKind::Dyn)
    }

    /// The field with this escaped name.
    #[must_use]
    pub fn field(&self, escaped: &str) -> Option<&Field> {
        let DeclKind::Object(object) = &self.kind else { return None };
        object.field(escaped)
    }

    /// What the items of a list are.
    #[must_use]
    pub fn items(&self) -> &Self {
        if let DeclKind::List { items, .. } = &self.kind { items } else { &DYN }
    }

    /// What the values of a map are.
    #[must_use]
    pub fn values(&self) -> &Self {
        if let DeclKind::Map { values } = &self.kind { values } else { &DYN }
    }

    /// What tells the items of a list apart.
    #[must_use]
    pub fn list_kind(&self) -> &ListKind {
        if let DeclKind::List { kind, .. } = &self.kind { kind } else { &ListKind::Atomic }
    }
}

/// Words that are escaped as `__word__` when they name a field.
pub const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// How expressions spell a property: `a-b` is `a__dash__b`. None for names that cannot be spelled.
#[must_use]
pub fn escape(name: &str) -> Option<String> {
    let mut characters = name.chars();
    let first = characters.next()?;
    if first.is_ascii_digit() {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("__") {
            escaped.push_str("__underscores__");
            rest = behind;
            continue;
        }
        match character {
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => escaped.push(c),
            _ => return None,
        }
        rest = &rest[character.len_utf8()..];
    }
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_names_are_escaped() {
        let cases = [
            ("a", Some("a")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("x__y", Some("x__underscores__y")),
            ("in", Some("__in__")),
            ("int", Some("int")),
            ("1a", None),
            ("", None),
            ("a b", None),
            ("a_b", Some("a_b")),
        ];
        for (name, escaped) in cases {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }
}
