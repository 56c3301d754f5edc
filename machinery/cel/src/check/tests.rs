//! Types of valid expressions, and messages for invalid ones.

use std::sync::Arc;

use crate::decl::{DeclKind, DeclType, Field, ListKind};
use crate::environment::Environment;
use crate::language::Language;
use crate::types::Type;

fn field(name: &str, of: DeclType) -> Field {
    Field { name: Arc::from(name), escaped: Arc::from(name), of: Arc::new(of) }
}

fn environment() -> Environment {
    let scalar = |kind| DeclType::scalar(kind, 0, 1);
    let fields = vec![
        field("a", scalar(DeclKind::String)),
        field("n", scalar(DeclKind::Int)),
        field("port", scalar(DeclKind::IntOrString)),
        field("list", DeclType::list(Arc::new(scalar(DeclKind::Int)), ListKind::Atomic, 9)),
        field("map", DeclType::map(Arc::new(scalar(DeclKind::String)), 9)),
    ];
    let root = DeclType::object("spec", fields, 2);
    let language = Language::of_release(crate::kubernetes::STORED_EXPRESSIONS);
    Environment::builder().language(language).variable("self", root.ty).build()
}

#[test]
fn expressions_have_the_types_that_cel_gives_them() {
    let cases = [
        ("self.n + 1", "int"),
        ("self.port", "dyn"),
        ("self.list.map(x, string(x))", "list(string)"),
        ("self.map['k']", "string"),
        ("self.map.all(k, k != '')", "bool"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("[1, 2].filter(x, x > 1)", "list(int)"),
        ("self.n > 1 ? 'a' : 'b'", "string"),
        ("type(1)", "type(int)"),
        ("int", "type(int)"),
        ("null", "null"),
        ("self.port == 1 || self.port == 'a'", "bool"),
        ("timestamp('2023-01-01T00:00:00Z') - duration('1h')", "timestamp"),
        ("google.protobuf.Timestamp", "type(timestamp)"),
        ("1 < 2.5", "bool"),
    ];
    for (text, ty) in cases {
        let program = environment().compile(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(program.result_type().to_string(), ty, "{text}");
    }
}

#[test]
fn type_errors_have_the_messages_of_cel_go() {
    let cases = [
        ("self.x", "ERROR: <input>:1:5: undefined field 'x'\n | self.x\n | ....^"),
        ("x", "ERROR: <input>:1:1: undeclared reference to 'x' (in container '')\n | x\n | ^"),
        ("f(1)", "ERROR: <input>:1:2: undeclared reference to 'f' (in container '')\n | f(1)\n | .^"),
        (
            "self.a.g()",
            "ERROR: <input>:1:9: undeclared reference to 'g' (in container '')\n | self.a.g()\n | ........^",
        ),
        (
            "self.a == self.n",
            "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(string, int)'\n | self.a == self.n\n | .......^",
        ),
        (
            "self.a.contains(1)",
            "ERROR: <input>:1:16: found no matching overload for 'contains' applied to 'string.(int)'\n | self.a.contains(1)\n | ...............^",
        ),
        ("[1, 'a']", "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^"),
        (
            "self.n && true",
            "ERROR: <input>:1:5: expected type 'bool' but found 'int'\n | self.n && true\n | ....^",
        ),
        (
            "self.a.b",
            "ERROR: <input>:1:7: type 'string' does not support field selection\n | self.a.b\n | ......^",
        ),
        (
            "self.n.all(x, x)",
            "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | self.n.all(x, x)\n | ....^",
        ),
        ("duration('x')", "ERROR: <input>:1:10: invalid duration argument\n | duration('x')\n | .........^"),
        (
            "'a'.matches('(')",
            "ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('(')\n | ............^",
        ),
    ];
    for (text, message) in cases {
        let error = environment().compile(text).map(|program| program.result_type().clone()).unwrap_err();
        assert_eq!(error.to_string(), format!("compilation failed: {message}"), "{text}");
    }
}

#[test]
fn several_errors_are_reported_at_once() {
    let error =
        environment().compile("self.x == self.y").map(|program| program.result_type().clone()).unwrap_err();
    let printed = error.to_string();
    assert!(
        printed.contains("undefined field 'x'")
            && printed.contains("\nERROR: <input>:1:15: undefined field 'y'"),
        "{printed}"
    );
}

#[test]
fn types_that_grow_without_bound_are_rejected() {
    let text = format!("[1]{}", ".map(x, {'k': [x, x]})".repeat(40));
    assert!(environment().compile(&text).is_ok() || environment().compile(&text).is_err());
    assert_eq!(
        environment().compile("{1: {'a': true}}").unwrap().result_type(),
        &Type::map(Type::Int, Type::map(Type::String, Type::Bool))
    );
}
