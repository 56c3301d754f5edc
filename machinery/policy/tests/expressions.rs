//! Tests of the list of expressions of a policy, and of compilation errors.

use portico_policy::{
    Expression, MutatingPolicy, MutatingPolicySource, MutationSource, ValidatingPolicy,
    ValidatingPolicySource, ValidationSource,
};

fn texts<'e>(expressions: impl Iterator<Item = &'e Expression>) -> Vec<(&'e str, bool)> {
    expressions.map(|expression| (expression.text(), expression.error().is_none())).collect()
}

#[test]
fn a_policy_lists_all_expressions_including_invalid_ones() {
    let validation =
        ValidationSource { expression: "lost == 1", message_expression: "'m'", ..Default::default() };
    let policy = ValidatingPolicy::compile(&ValidatingPolicySource {
        match_conditions: vec!["true"],
        variables: vec![("b", "1 +"), ("a", "1")],
        validations: vec![validation],
        audit_annotations: vec![("k", "1")],
        ..Default::default()
    });
    let expected =
        [("true", true), ("1", true), ("1 +", false), ("lost == 1", false), ("'m'", true), ("1", false)];
    assert_eq!(texts(policy.expressions()), expected);
    let error = policy.expressions().find(|one| one.text() == "1" && one.error().is_some()).unwrap().error();
    assert_eq!(error, Some("must evaluate to one of [string null_type] but got int"));
    let mutations = vec![MutationSource::JsonPatch("[]"), MutationSource::ApplyConfiguration("1")];
    let policy = MutatingPolicy::compile(&MutatingPolicySource { mutations, ..Default::default() });
    assert_eq!(texts(policy.expressions()).last(), Some(&("1", false)));
    assert!(!policy.has_match_conditions());
}
