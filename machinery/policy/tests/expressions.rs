//! Which expressions a policy has, and what is wrong with those that do not compile.

use portico_policy::{
    Expression, MutatingPolicy, MutatingSource, MutationSource, ValidatingPolicy, ValidatingSource,
    ValidationSource,
};

fn texts<'e>(expressions: impl Iterator<Item = &'e Expression>) -> Vec<(&'e str, bool)> {
    expressions.map(|expression| (expression.text(), expression.error().is_none())).collect()
}

#[test]
fn a_policy_names_all_of_its_expressions_and_those_that_do_not_compile() {
    let validation =
        ValidationSource { expression: "lost == 1", message_expression: "'m'", ..Default::default() };
    let policy = ValidatingPolicy::compile(&ValidatingSource {
        conditions: vec!["true"],
        variables: vec![("b", "1 +"), ("a", "1")],
        validations: vec![validation],
        annotations: vec![("k", "1")],
        ..Default::default()
    });
    let expected =
        [("true", true), ("1", true), ("1 +", false), ("lost == 1", false), ("'m'", true), ("1", false)];
    assert_eq!(texts(policy.expressions()), expected);
    let why = policy.expressions().find(|one| one.text() == "1" && one.error().is_some()).unwrap().error();
    assert_eq!(why, Some("must evaluate to one of [string null_type] but got int"));
    let mutations = vec![MutationSource::Patch("[]"), MutationSource::Configuration("1")];
    let policy = MutatingPolicy::compile(&MutatingSource { mutations, ..Default::default() });
    assert_eq!(texts(policy.expressions()).last(), Some(&("1", false)));
    assert!(!policy.has_conditions());
}
