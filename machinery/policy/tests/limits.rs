//! Tests of the limits of policies: cost for each request, and memory while they are stored.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use portico_cel::library::authorization::{Authorizer, Decision, Question};
use portico_machinery::{GroupVersionResource, Object};
use portico_policy::{
    DEFAULT_COST_LIMIT, EvaluationInput, ExpressionBudget, LazyObject, MatchState, MutatingPolicy,
    MutatingPolicySource, MutationSource, ValidatingPolicy, ValidatingPolicySource, ValidationOutcome,
    ValidationSource, parse_request,
};

/// Maximum memory of a policy with three expressions, in bytes.
const MAX_POLICY_BYTES: u64 = 60 << 10;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
const OVER_LIMIT: &str = "resulted in error: operation cancelled: actual cost limit exceeded";

/// Authorizer that allows everything.
struct AllowAll;

impl Authorizer for AllowAll {
    fn decide(&self, _question: &Question, _verb: &str) -> Decision {
        Decision { allowed: true, reason: String::new(), error: None }
    }

    fn of_service_account(&self, _namespace: &str, _name: &str) -> Arc<dyn Authorizer> {
        Arc::new(Self)
    }

    fn check_service_account(&self, _namespace: &str, _name: &str) -> Result<(), &'static str> {
        Ok(())
    }
}

fn policy(variables: &[(&'static str, &'static str)], validations: &[&'static str]) -> ValidatingPolicy {
    let validation = |expression: &&'static str| ValidationSource { expression, ..Default::default() };
    ValidatingPolicy::compile(&ValidatingPolicySource {
        fails_closed: true,
        variables: variables.to_vec(),
        validations: validations.iter().map(validation).collect(),
        ..Default::default()
    })
}

/// Evaluates policies one after another for an object with a hundred numbers.
fn evaluate(budget: &ExpressionBudget, policies: &[ValidatingPolicy]) -> Vec<ValidationOutcome> {
    with_input(budget, |subject| policies.iter().map(|policy| policy.evaluate(subject)).collect())
}

/// Calls `evaluate` with the creation of an object with a hundred numbers.
fn with_input<T>(budget: &ExpressionBudget, evaluate: impl FnOnce(&EvaluationInput<'_>) -> T) -> T {
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let object = format!(r#"{{"metadata": {{"name": "o"}}, "numbers": [{}]}}"#, numbers.join(","));
    let object = Object::from_json(object.as_bytes()).unwrap();
    let request = LazyObject::new(Box::new(|| parse_request(br#"{"operation": "CREATE", "name": "o"}"#)));
    let resource = GroupVersionResource::new("", "v1", "things");
    let input = EvaluationInput {
        object: Some(&object),
        old_object: None,
        request: &request,
        params: None,
        namespace: None,
        authorizer: Some(Arc::new(AllowAll)),
        request_budget: budget,
        resource: &resource,
    };
    evaluate(&input)
}

fn refusals(verdicts: &[ValidationOutcome]) -> Vec<&str> {
    verdicts.iter().flat_map(|verdict| &verdict.denials).map(|denial| &*denial.message).collect()
}

/// Loop with ten thousand iterations.
const LOOP: &str = "object.numbers.all(a, object.numbers.all(b, a + b >= 0))";
/// Loop with a million iterations.
const LONG_LOOP: &str = "object.numbers.all(a, object.numbers.all(b, object.numbers.all(c, a + b + c >= 0)))";

#[test]
fn the_cost_of_all_policies_of_a_request_is_limited() {
    let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
    let policies: Vec<_> = (0..20).map(|_| policy(&[], &[LOOP])).collect();
    let verdicts = evaluate(&work, &policies);
    assert_eq!(verdicts[0], ValidationOutcome::default(), "policies within the budget are evaluated");
    assert_eq!(work.remaining(), 0);
    let refused = refusals(&verdicts);
    assert!(refused.len() >= 18 && refused.iter().all(|text| *text == OUT_OF_BUDGET), "{refused:?}");
}

#[test]
fn expressions_of_a_request_share_the_free_steps_of_its_budget() {
    let hashing = format!("!has(object.{})", "n".repeat(90_000)).leak();
    let ordinary = "object.metadata.name.startsWith('o') && object.numbers.size() == 100";
    let evaluate = |expression: &'static str, times: usize| {
        let policy = policy(&[], &[expression]);
        let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        let verdicts =
            with_input(&work, |subject| (0..times).map(|_| policy.evaluate(subject)).collect::<Vec<_>>());
        (
            verdicts.iter().filter(|verdict| **verdict == ValidationOutcome::default()).count(),
            DEFAULT_COST_LIMIT - work.remaining(),
        )
    };
    let (passed, cost) = evaluate(hashing, 1);
    assert!(passed == 1 && cost < 10, "{cost}");
    let (passed, cost) = evaluate(hashing, 300);
    assert!((100..200).contains(&passed) && cost == DEFAULT_COST_LIMIT, "{passed}");
    let (_, cost) = evaluate(ordinary, 1);
    assert_eq!(
        evaluate(ordinary, 300),
        (300, 300 * cost),
        "steps with a cost do not use the limit of free steps"
    );
}

#[test]
fn a_long_evaluation_is_interrupted_on_the_serving_thread() {
    let (short, long) = (policy(&[], &["object.numbers.size() == 100"]), policy(&[], &[LOOP]));
    let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
    let inline =
        |policy: &ValidatingPolicy| with_input(&work, |subject| work.try_inline(|| policy.evaluate(subject)));
    assert_eq!(inline(&short), Some(ValidationOutcome::default()));
    let before = work.remaining();
    assert!(before < DEFAULT_COST_LIMIT);
    assert_eq!(inline(&long), None);
    assert_eq!(work.remaining(), before, "an interrupted evaluation is not charged");
    assert_eq!(inline(&short), Some(ValidationOutcome::default()), "copying the objects takes longer");
    let ranges = policy(&[], &["lists.range(30000).size() == 30000"]);
    assert_eq!(inline(&ranges), None, "an evaluation beyond the inline cost has no outcome");
    let before = work.remaining();
    let (copied_remaining, verdict) = with_input(&work, |subject| {
        let copy = subject.to_owned_input(|| false);
        (copy.request_budget.remaining(), long.evaluate(&copy.as_input()))
    });
    assert_eq!((copied_remaining, verdict), (before, ValidationOutcome::default()));
}

#[test]
fn mutations_with_multiplied_values_are_refused() {
    let nested = |levels| format!("[1, 2, 3, 4]{}", ".map(x, [x, x, x, x])".repeat(levels));
    let configuration = format!("Object{{data: Object.data{{x: {}}}}}", nested(20));
    let operation = r#"JSONPatch{op: "add", path: "/data/x", value: "#;
    let patch = format!("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(i, {operation}{}}})", nested(7));
    let key = format!("'{}'", "k".repeat(4_000));
    let keys = format!("Object{{data: Object.data{{x: [{{{key}: 1}}]{}}}}}", ".map(x, [x, x])".repeat(12));
    let path = format!("lists.range(2000).map(i, JSONPatch{{op: 'remove', path: {key}}})");
    for mutation in [
        MutationSource::ApplyConfiguration(&configuration),
        MutationSource::JsonPatch(&patch),
        MutationSource::ApplyConfiguration(&keys),
        MutationSource::JsonPatch(&path),
    ] {
        let policy = MutatingPolicy::compile(&MutatingPolicySource {
            mutations: vec![mutation],
            ..Default::default()
        });
        let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        let change = with_input(&work, |subject| policy.evaluate_mutation(0, subject).map(drop));
        let problem = change.unwrap_err();
        let message = problem.message();
        assert!(message.ends_with("actual cost limit exceeded"), "{message}");
    }
}

#[test]
fn a_message_lists_a_limited_number_of_wrong_names() {
    let field = "f".repeat(20_000);
    let shared = format!("[Object.b{{}}]{}", ".map(x, [x, x, x, x])".repeat(6));
    let configuration = format!("Object{{{field}: {shared}}}");
    let mutations = vec![MutationSource::ApplyConfiguration(&configuration)];
    let policy = MutatingPolicy::compile(&MutatingPolicySource { mutations, ..Default::default() });
    let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
    let problem = with_input(&work, |subject| policy.evaluate_mutation(0, subject).map(drop)).unwrap_err();
    let message = problem.message();
    assert!(message.starts_with("type mismatch: unexpected type name"), "{message:.100}");
    assert_eq!((message.lines().count(), message.len() < 20_000), (10, true));
}

#[test]
fn an_expression_over_its_own_limit_fails_as_in_upstream() {
    for variables in [&[][..], &[("long", LONG_LOOP)][..]] {
        let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        let expression = if variables.is_empty() { LONG_LOOP } else { "variables.long" };
        let verdicts = evaluate(&work, &[policy(variables, &[expression])]);
        let refused = refusals(&verdicts);
        assert!(
            matches!(refused[..], [text] if text.contains(OVER_LIMIT.trim_start_matches("resulted in error: "))),
            "{refused:?}"
        );
        assert_eq!(work.remaining(), 0, "the budget is used up");
    }
}

#[test]
fn nested_variables_share_one_budget() {
    let chain = [
        ("a", LOOP),
        ("b", "object.numbers.all(a, a >= 0) && variables.a"),
        ("c", "object.numbers.all(a, a >= 0) && variables.b"),
    ];
    let work = ExpressionBudget::new(1_000_000);
    assert_eq!(refusals(&evaluate(&work, &[policy(&chain, &["variables.c"])])), [""; 0]);
    let spent = 1_000_000 - work.remaining();
    let work = ExpressionBudget::new(spent);
    assert_eq!(refusals(&evaluate(&work, &[policy(&chain, &["variables.c"])])), [""; 0]);
    assert_eq!(work.remaining(), 0, "the exact cost is sufficient");
    let work = ExpressionBudget::new(spent - 1);
    assert_eq!(refusals(&evaluate(&work, &[policy(&chain, &["variables.c"])])).len(), 1);
}

#[test]
fn authorizer_checks_count_only_for_the_budget_of_the_policy() {
    let ask = "authorizer.path('/a').check('get').allowed()";
    let work = ExpressionBudget::new(1_000);
    let verdicts = evaluate(&work, &[policy(&[], &[ask]), policy(&[], &[ask, ask])]);
    assert_eq!(refusals(&verdicts), [""; 0]);
    assert!(work.remaining() > 900, "{}", work.remaining());
    let many = policy(&[], &[ask; 40]);
    assert_eq!(refusals(&evaluate(&ExpressionBudget::new(DEFAULT_COST_LIMIT), &[many])), [OUT_OF_BUDGET]);
}

#[test]
fn a_policy_reports_ignored_failures() {
    let source = ValidatingPolicySource {
        match_conditions: vec!["object.nothing == 1"],
        validations: vec![ValidationSource { expression: "true", ..Default::default() }],
        ..Default::default()
    };
    let verdicts =
        evaluate(&ExpressionBudget::new(DEFAULT_COST_LIMIT), &[ValidatingPolicy::compile(&source)]);
    let [ValidationOutcome { denials, ignored_errors, match_state, .. }] = &verdicts[..] else {
        panic!("{verdicts:?}")
    };
    assert_eq!((denials.len(), ignored_errors.len(), *match_state), (0, 1, MatchState::Failed));
}

#[test]
fn a_policy_of_three_expressions_takes_little_memory() {
    let compile = || {
        policy(
            &[("containers", "object.spec.template.spec.containers")],
            &[
                "variables.containers.all(c, c.image.startsWith('registry.example.com/') && !c.image.endsWith(':latest'))",
                "has(object.metadata.labels) && object.metadata.labels.exists(l, l == 'team') && object.spec.replicas <= 5",
                "request.operation != 'DELETE' || authorizer.requestResource.check('approve').allowed() || object.metadata.name.matches('^[a-z]+-[0-9]{1,5}$')",
            ],
        )
    };
    // The first compilation creates data that all policies share.
    drop(compile());
    let mut compiled = None;
    let info = allocation_counter::measure(|| compiled = Some(compile()));
    let bytes = u64::try_from(info.bytes_current).unwrap();
    assert!(bytes <= MAX_POLICY_BYTES, "{bytes} bytes");
    assert!(compiled.is_some());
}
