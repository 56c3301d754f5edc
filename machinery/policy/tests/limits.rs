//! What policies may cost: in work for each request, and in memory as long as they are stored.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use portico_cel::library::authorization::{Authorizer, Decision, Question};
use portico_machinery::{GroupVersionResource, Object};
use portico_policy::{
    Concerned, DEFAULT_COST_LIMIT, ExpressionBudget, LazyObject, MutatingPolicy, MutatingSource,
    MutationSource, Subject, ValidatingPolicy, ValidatingSource, ValidationSource, Verdict, read_request,
};

/// The memory of a policy of three expressions, in bytes.
const MAX_POLICY_BYTES: u64 = 60 << 10;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
const OVER_LIMIT: &str = "resulted in error: operation cancelled: actual cost limit exceeded";

/// Allows everything.
struct Anything;

impl Authorizer for Anything {
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
    ValidatingPolicy::compile(&ValidatingSource {
        fails: true,
        variables: variables.to_vec(),
        validations: validations.iter().map(validation).collect(),
        ..Default::default()
    })
}

/// Verdicts of policies on an object with a hundred numbers, one after another.
fn evaluate(work: &ExpressionBudget, policies: &[ValidatingPolicy]) -> Vec<Verdict> {
    with_subject(work, |subject| policies.iter().map(|policy| policy.evaluate(subject)).collect())
}

/// Evaluates something about the creation of an object with a hundred numbers.
fn with_subject<T>(work: &ExpressionBudget, evaluate: impl FnOnce(&Subject<'_>) -> T) -> T {
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let object = format!(r#"{{"metadata": {{"name": "o"}}, "numbers": [{}]}}"#, numbers.join(","));
    let object = Object::from_json(object.as_bytes()).unwrap();
    let request = LazyObject::new(Box::new(|| read_request(br#"{"operation": "CREATE", "name": "o"}"#)));
    let resource = GroupVersionResource::new("", "v1", "things");
    let subject = Subject {
        object: Some(&object),
        old: None,
        request: &request,
        params: None,
        namespace: None,
        authorizer: Some(Arc::new(Anything)),
        request_budget: work,
        resource: &resource,
    };
    evaluate(&subject)
}

fn refusals(verdicts: &[Verdict]) -> Vec<&str> {
    verdicts.iter().flat_map(|verdict| &verdict.denials).map(|denial| &*denial.message).collect()
}

/// A loop of ten thousand turns.
const LOOP: &str = "object.numbers.all(a, object.numbers.all(b, a + b >= 0))";
/// One of a million.
const LONG_LOOP: &str = "object.numbers.all(a, object.numbers.all(b, object.numbers.all(c, a + b + c >= 0)))";

#[test]
fn what_all_policies_of_a_request_cost_together_is_bounded() {
    let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
    let policies: Vec<_> = (0..20).map(|_| policy(&[], &[LOOP])).collect();
    let verdicts = evaluate(&work, &policies);
    assert_eq!(verdicts[0], Verdict::default(), "what fits is evaluated");
    assert_eq!(work.left(), 0);
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
            with_subject(&work, |subject| (0..times).map(|_| policy.evaluate(subject)).collect::<Vec<_>>());
        (
            verdicts.iter().filter(|verdict| **verdict == Verdict::default()).count(),
            DEFAULT_COST_LIMIT - work.left(),
        )
    };
    let (held, cost) = evaluate(hashing, 1);
    assert!(held == 1 && cost < 10, "{cost}");
    let (held, cost) = evaluate(hashing, 300);
    assert!((100..200).contains(&held) && cost == DEFAULT_COST_LIMIT, "{held}");
    let (_, cost) = evaluate(ordinary, 1);
    assert_eq!(evaluate(ordinary, 300), (300, 300 * cost), "what costs cover needs no free steps");
}

#[test]
fn an_evaluation_that_takes_long_is_not_done_by_the_thread_that_serves_the_request() {
    let (short, long) = (policy(&[], &["object.numbers.size() == 100"]), policy(&[], &[LOOP]));
    let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
    let inline = |policy: &ValidatingPolicy| {
        with_subject(&work, |subject| work.try_inline(|| policy.evaluate(subject)))
    };
    assert_eq!(inline(&short), Some(Verdict::default()));
    let before = work.left();
    assert!(before < DEFAULT_COST_LIMIT);
    assert_eq!(inline(&long), None);
    assert_eq!(work.left(), before, "the request pays for the evaluation that has an outcome");
    assert_eq!(inline(&short), Some(Verdict::default()), "copying the objects takes longer");
    let ranges = policy(&[], &["lists.range(30000).size() == 30000"]);
    assert_eq!(inline(&ranges), None, "what cannot be paid for here is not an outcome");
    let before = work.left();
    let (elsewhere, verdict) = with_subject(&work, |subject| {
        let copy = subject.to_owned_subject(|| false);
        (copy.request_budget.left(), long.evaluate(&copy.as_subject()))
    });
    assert_eq!((elsewhere, verdict), (before, Verdict::default()));
}

#[test]
fn changes_that_contain_values_many_times_are_refused() {
    let nested = |levels| format!("[1, 2, 3, 4]{}", ".map(x, [x, x, x, x])".repeat(levels));
    let configuration = format!("Object{{data: Object.data{{x: {}}}}}", nested(20));
    let operation = r#"JSONPatch{op: "add", path: "/data/x", value: "#;
    let patch = format!("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(i, {operation}{}}})", nested(7));
    let key = format!("'{}'", "k".repeat(4_000));
    let keys = format!("Object{{data: Object.data{{x: [{{{key}: 1}}]{}}}}}", ".map(x, [x, x])".repeat(12));
    let path = format!("lists.range(2000).map(i, JSONPatch{{op: 'remove', path: {key}}})");
    for mutation in [
        MutationSource::Configuration(&configuration),
        MutationSource::Patch(&patch),
        MutationSource::Configuration(&keys),
        MutationSource::Patch(&path),
    ] {
        let policy =
            MutatingPolicy::compile(&MutatingSource { mutations: vec![mutation], ..Default::default() });
        let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        let change = with_subject(&work, |subject| policy.change(0, subject).map(drop));
        let problem = change.unwrap_err();
        let why = problem.message();
        assert!(why.ends_with("actual cost limit exceeded"), "{why}");
    }
}

#[test]
fn a_message_lists_few_of_many_wrong_names() {
    let field = "f".repeat(20_000);
    let shared = format!("[Object.b{{}}]{}", ".map(x, [x, x, x, x])".repeat(6));
    let configuration = format!("Object{{{field}: {shared}}}");
    let mutations = vec![MutationSource::Configuration(&configuration)];
    let policy = MutatingPolicy::compile(&MutatingSource { mutations, ..Default::default() });
    let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
    let problem = with_subject(&work, |subject| policy.change(0, subject).map(drop)).unwrap_err();
    let why = problem.message();
    assert!(why.starts_with("type mismatch: unexpected type name"), "{why:.100}");
    assert_eq!((why.lines().count(), why.len() < 20_000), (10, true));
}

#[test]
fn an_expression_that_costs_too_much_by_itself_is_refused_as_upstream_refuses_it() {
    for variables in [&[][..], &[("long", LONG_LOOP)][..]] {
        let work = ExpressionBudget::new(DEFAULT_COST_LIMIT);
        let expression = if variables.is_empty() { LONG_LOOP } else { "variables.long" };
        let verdicts = evaluate(&work, &[policy(variables, &[expression])]);
        let refused = refusals(&verdicts);
        assert!(
            matches!(refused[..], [text] if text.contains(OVER_LIMIT.trim_start_matches("resulted in error: "))),
            "{refused:?}"
        );
        assert_eq!(work.left(), 0, "nothing is left for others");
    }
}

#[test]
fn variables_that_wait_for_each_other_spend_of_the_same() {
    let chain = [
        ("a", LOOP),
        ("b", "object.numbers.all(a, a >= 0) && variables.a"),
        ("c", "object.numbers.all(a, a >= 0) && variables.b"),
    ];
    let work = ExpressionBudget::new(1_000_000);
    assert_eq!(refusals(&evaluate(&work, &[policy(&chain, &["variables.c"])])), [""; 0]);
    let spent = 1_000_000 - work.left();
    let work = ExpressionBudget::new(spent);
    assert_eq!(refusals(&evaluate(&work, &[policy(&chain, &["variables.c"])])), [""; 0]);
    assert_eq!(work.left(), 0, "just enough is enough");
    let work = ExpressionBudget::new(spent - 1);
    assert_eq!(refusals(&evaluate(&work, &[policy(&chain, &["variables.c"])])).len(), 1);
}

#[test]
fn questions_to_the_authorizer_are_no_work_and_still_count_for_the_budget_of_a_policy() {
    let ask = "authorizer.path('/a').check('get').allowed()";
    let work = ExpressionBudget::new(1_000);
    let verdicts = evaluate(&work, &[policy(&[], &[ask]), policy(&[], &[ask, ask])]);
    assert_eq!(refusals(&verdicts), [""; 0]);
    assert!(work.left() > 900, "{}", work.left());
    let many = policy(&[], &[ask; 40]);
    assert_eq!(refusals(&evaluate(&ExpressionBudget::new(DEFAULT_COST_LIMIT), &[many])), [OUT_OF_BUDGET]);
}

#[test]
fn a_policy_whose_failures_are_ignored_says_what_was_ignored() {
    let source = ValidatingSource {
        conditions: vec!["object.nothing == 1"],
        validations: vec![ValidationSource { expression: "true", ..Default::default() }],
        ..Default::default()
    };
    let verdicts =
        evaluate(&ExpressionBudget::new(DEFAULT_COST_LIMIT), &[ValidatingPolicy::compile(&source)]);
    let [Verdict { denials, ignored, conditions, .. }] = &verdicts[..] else { panic!("{verdicts:?}") };
    assert_eq!((denials.len(), ignored.len(), *conditions), (0, 1, Concerned::Failed));
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
    // What all policies share is made with the first one.
    drop(compile());
    let mut kept = None;
    let info = allocation_counter::measure(|| kept = Some(compile()));
    let bytes = u64::try_from(info.bytes_current).unwrap();
    assert!(bytes <= MAX_POLICY_BYTES, "{bytes} bytes");
    assert!(kept.is_some());
}
