//! Trees of valid expressions, and messages for invalid ones.

use super::*;
use crate::ast::operator;
use crate::diagnostics::Diagnostics;
use crate::macros::{OPTIONALS, SORT_BY, STANDARD, TWO_VARIABLES};

fn read(text: &str) -> Result<Parsed, String> {
    let macros: Vec<&Macro> =
        STANDARD.iter().chain(&TWO_VARIABLES).chain(&OPTIONALS).chain(std::iter::once(&SORT_BY)).collect();
    parse(text, &macros).map_err(|issues| Diagnostics::new(text, issues).to_string())
}

/// A tree as nested calls.
fn spell(expr: &Expr) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    match &expr.kind {
        ExprKind::Literal(value) => match value {
            crate::Value::String(text) => format!("{:?}", &**text),
            crate::Value::Int(int) => int.to_string(),
            crate::Value::Uint(int) => format!("{int}u"),
            crate::Value::Double(double) => format!("{double:?}"),
            crate::Value::Bool(value) => value.to_string(),
            crate::Value::Null => "null".to_owned(),
            other => format!("{other:?}"),
        },
        ExprKind::Ident(name) => name.to_string(),
        ExprKind::Select { operand, field, test } => {
            format!("{}.{field}{}", spell(operand), if *test { "~" } else { "" })
        }
        ExprKind::Call { function, target, arguments } => {
            let on = target.as_ref().map(|target| format!("{}.", spell(target))).unwrap_or_default();
            format!("{on}{function}({})", join(arguments.iter().map(spell).collect()))
        }
        ExprKind::List(items) => format!("[{}]", join(items.iter().map(|item| spell(&item.value)).collect())),
        ExprKind::Map(entries) => {
            let entries =
                entries.iter().map(|entry| format!("{}: {}", spell(&entry.key), spell(&entry.value)));
            format!("{{{}}}", join(entries.collect()))
        }
        ExprKind::Struct { name, .. } => format!("{name}{{}}"),
        ExprKind::Comprehension(fold) => {
            format!("fold({}, {}, {})", spell(&fold.range), fold.variable, spell(&fold.step))
        }
        ExprKind::Broken => "?".to_owned(),
    }
}

#[test]
fn operators_have_the_precedence_of_the_grammar() {
    let cases = [
        ("1 + 2 * 3 - 4", "_-_(_+_(1, _*_(2, 3)), 4)"),
        ("-1", "-1"),
        ("- a", "-_(a)"),
        ("!!a", "a"),
        ("a - 1", "_-_(a, 1)"),
        ("a -1", "_-_(a, 1)"),
        ("--a", "a"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))"),
        ("a || b && c", "_||_(a, _&&_(b, c))"),
        ("a in [1, 2,]", "@in(a, [1, 2])"),
        ("a.b[0].c(1)", "_[_](a.b, 0).c(1)"),
        ("a.?b[?0]", "_[?_](_?._(a, \"b\"), 0)"),
        ("{'a': 1u, 2: 0x10}", "{\"a\": 1u, 2: 16}"),
        ("has(a.b)", "a.b~"),
        ("a.b.C{}", "a.b.C{}"),
        (".a", ".a"),
        ("r'\\d' + \"\\u0041\" + '''x'y'''", "_+_(_+_(\"\\\\d\", \"A\"), \"x'y\")"),
        ("1.5e3 // note", "1500.0"),
        ("a.all(x, x)", "fold(a, x, _&&_(@result, x))"),
        ("a.map(x, x > 1, x)", "fold(a, x, _?_:_(_>_(x, 1), _+_(@result, [x]), @result))"),
        ("-9223372036854775808", "-9223372036854775808"),
    ];
    for (text, tree) in cases {
        assert_eq!(read(text).map(|parsed| spell(&parsed.expr)).as_deref(), Ok(tree), "{text}");
    }
    assert!(
        matches!(&read("a - b").unwrap().expr.kind, ExprKind::Call { function, .. } if **function == *operator::SUBTRACT)
    );
}

#[test]
fn invalid_expressions_are_rejected_with_their_position() {
    let cases = [
        (
            "self.a ==",
            "ERROR: <input>:1:10: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', ",
        ),
        ("a b", "ERROR: <input>:1:3: Syntax error: extraneous input 'b' expecting <EOF>\n | a b\n | ..^"),
        ("if", "ERROR: <input>:1:1: reserved identifier: if\n | if\n | ^"),
        ("99999999999999999999", "ERROR: <input>:1:1: invalid int literal"),
        ("1e999", "ERROR: <input>:1:1: invalid double literal"),
        ("has(a)", "ERROR: <input>:1:5: invalid argument to has() macro"),
        ("a.all(1, true)", "ERROR: <input>:1:7: argument must be a simple name"),
        ("a.map(1, true)", "ERROR: <input>:1:7: argument is not an identifier"),
        ("a.all(x, x, true)", "ERROR: <input>:1:10: duplicate variable name: x"),
        ("'a", "ERROR: <input>:1:1: Syntax error: token recognition error at: ''a'"),
        ("a = b", "ERROR: <input>:1:3: Syntax error: token recognition error at: '= '"),
        ("", "ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>'"),
    ];
    for (text, message) in cases {
        let refused = read(text).map(|parsed| spell(&parsed.expr)).unwrap_err();
        assert!(refused.starts_with(message), "{text}: {refused}");
    }
}

/// Responses of kube-apiserver 1.36.3 for rules that do not parse.
const REJECTED_EXPRESSIONS: &str = include_str!("../../testdata/syntax.jsonl");

#[test]
fn syntax_errors_are_reported_as_upstream_reports_them() {
    let rows: Vec<serde_json::Value> =
        REJECTED_EXPRESSIONS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() > 200);
    for row in rows {
        let refused = read(row["text"].as_str().unwrap()).map(|parsed| spell(&parsed.expr)).unwrap_err();
        assert_eq!(refused, row["error"].as_str().unwrap());
    }
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = |count: usize| format!("{}1{}", "(".repeat(count), ")".repeat(count));
    assert!(read(&deep(249)).is_ok());
    assert_eq!(
        read(&deep(1_000)).unwrap_err(),
        "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
    );
    assert!(read(&vec!["1"; 248].join("+")).is_ok());
    assert!(read(&vec!["1"; 400].join("+")).is_err());
    assert!(read(&vec!["a"; 5_000].join("&&")).is_ok());
    assert!(read(&format!("a{}", ".b".repeat(300))).is_err());
    let long = format!("'{}'", "x".repeat(MAX_EXPRESSION_LENGTH));
    assert!(
        read(&long)
            .unwrap_err()
            .contains("expression code point size exceeds limit: size: 100002, limit 100000")
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,60}") {
        let _ = read(&text);
    }

    #[test]
    fn no_sequence_of_tokens_makes_the_parser_panic(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "a", "self", "1", "-", "'x'", "b'\\x01'", "(", ")", "[", "]", "{", "}", ".", "?", ":", ",", "&&", "||", "in",
            "has", "all", "map", "x", "==", "true", "null", "optMap", "sortBy", "1.5", "2u", "`a`", "\\", "\"", "é",
        ]), 0..40)
    ) {
        let _ = read(&parts.concat());
        let _ = read(&parts.join(" "));
    }
}

#[test]
fn copies_of_copies_are_bounded() {
    let doubled = |times: usize| read(&format!("a{}", ".optMap(x, x)".repeat(times)));
    assert!(doubled(10).is_ok());
    assert!(doubled(40).unwrap_err().contains("expression is too large"));
}
