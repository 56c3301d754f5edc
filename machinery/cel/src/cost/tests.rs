//! Estimates compared with the numbers in upstream's tests.

use std::sync::Arc;

use crate::cost::DeclaredSizes;
use crate::decl::{DeclKind, DeclType, Field, ListKind};
use crate::environment::Environment;
use crate::language::Language;

const REQUEST: u64 = 3 * 1024 * 1024;

fn field(name: &str, of: DeclType) -> Field {
    Field { name: Arc::from(name), escaped: Arc::from(name), of: Arc::new(of) }
}

fn text(max: u64) -> DeclType {
    DeclType::scalar(DeclKind::String, max, 2)
}

fn root() -> DeclType {
    let numbers = DeclType::list(Arc::new(DeclType::scalar(DeclKind::Int, 0, 1)), ListKind::Atomic, 10);
    let texts = DeclType::list(Arc::new(text(REQUEST - 2)), ListKind::Atomic, (REQUEST - 2) / 3);
    let labels = DeclType::map(Arc::new(text(40)), 5);
    let fields = vec![
        field("n", DeclType::scalar(DeclKind::Int, 0, 1)),
        field("s", text(40)),
        field("long", text(REQUEST - 2)),
        field("numbers", numbers),
        field("texts", texts),
        field("labels", labels),
    ];
    DeclType::object("root", fields, 2)
}

fn max_estimate(rule: &str) -> u64 {
    let root = root();
    let language = Language::of_release(crate::kubernetes::NEW_EXPRESSIONS);
    let environment = Environment::builder().language(language).variable("self", root.ty.clone()).build();
    environment.compile(rule).map(|program| program.estimate(&DeclaredSizes(&root)).max).unwrap()
}

#[test]
fn estimates_count_names_and_traversals() {
    let cases = [
        ("true", 0),
        ("self.n > 1", 3),
        ("has(self.n)", 1),
        ("has(self.n) && self.n > 1", 4),
        // 40 bytes against one character: only the shorter one is read.
        ("self.s == 'a'", 3),
        ("self.s == self.long", 4 + 4),
        ("self.s.contains('abc')", 2 + 4),
        ("self.s.matches('^a+$')", 2 + 5),
        ("self.numbers.all(x, x > 0)", 2 + 10 * (2 + 1 + 1 + 1) + 1),
        ("self.numbers.exists(x, x > 0)", 2 + 10 * (3 + 1 + 1 + 1) + 1),
        ("self.labels.all(k, self.labels[k] == 'v')", 2 + 5 * (2 + 1 + 2 + 1 + 1 + 1) + 1),
        ("self.numbers.size() > 3 ? true : false", 2 + 1 + 1),
        ("self.n in [1, 2, 3]", 2 + 10 + 3),
        ("self.s + self.s == 'x'", 2 + 2 + 8 + 1),
    ];
    for (rule, cost) in cases {
        assert_eq!(max_estimate(rule), cost, "{rule}");
    }
}

#[test]
fn unbounded_text_in_unbounded_lists_is_expensive() {
    let count = (REQUEST - 2) / 3;
    assert_eq!(max_estimate("self.texts.all(x, x == 'abcde')"), 2 + count * (2 + 1 + 1 + 1) + 1);
    assert!(max_estimate("self.texts.all(x, self.texts.all(y, x == y))") > 10_000_000_000);
}
