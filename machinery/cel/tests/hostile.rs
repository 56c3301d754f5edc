//! Hostile expressions, written to cause excessive work, blocking or a crash: each ends soon, rejected or with an error.

use std::time::Duration;

use cpu_time::ThreadTime;
use portico_cel::kubernetes::NEW_EXPRESSIONS;
use portico_cel::{Environment, EvalError, Language, Meter, Type, Value};

/// Cost budget of one evaluation.
const BUDGET: u64 = 1_000_000;
/// Limit of processor time: 100 ms, or 3 s in builds without optimization.
const MAX_TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 3_000 } else { 100 });

fn environment() -> Environment {
    Environment::builder()
        .language(Language::of_release(NEW_EXPRESSIONS))
        .variable("ints", Type::list(Type::Int))
        .variable("text", Type::String)
        .build()
}

/// Evaluates an expression, and checks that it ends soon.
fn evaluate_soon(expression: &str) -> Result<Value<'static>, String> {
    // Lists and strings that fit into a request.
    let ints = Value::list((0..100_000).map(Value::Int).collect());
    let variables = [("ints", ints), ("text", Value::text("a".repeat(1_000_000)))];
    let environment = environment();
    let began = ThreadTime::now();
    let result = environment.compile(expression).map_err(|error| error.to_string()).and_then(|program| {
        let (result, cost) = program.evaluate(&variables, BUDGET, &|| false);
        assert!(result.is_err() || cost <= BUDGET, "{cost}");
        result.map_err(|error| error.to_string())
    });
    let elapsed = began.elapsed();
    let excerpt: String = expression.chars().take(80).collect();
    assert!(elapsed < MAX_TIME, "{excerpt} takes {elapsed:?}");
    result
}

#[test]
fn deep_nesting_is_refused() {
    let deep =
        |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(1000), close.repeat(1000));
    for expression in [
        deep("(", "1", ")"),
        deep("[", "", "]"),
        deep("{1: ", "1", "}"),
        deep("ints.all(x, ", "true", ")"),
        deep("ints[", "0", "]"),
        deep("true ? ", "1", " : 2"),
        deep("size(", "text", ")"),
    ] {
        assert!(evaluate_soon(&expression).is_err());
    }
}

#[test]
fn long_expressions_end_soon() {
    let long = |item: &str, joint: &str, times: usize| vec![item; times].join(joint);
    for expression in [
        long("1", " + ", 20_000),
        long("true", " && ", 20_000),
        long("[1]", " + ", 5_000),
        format!("[{}]", long("1", ", ", 20_000)),
        format!("{}true", "!".repeat(20_000)),
        format!("text{}", ".trim()".repeat(5_000)),
        long("x", ".", 20_000),
    ] {
        let _ = evaluate_soon(&expression);
    }
}

/// Returns a list with this many levels of nesting, each created from the previous one by `map`.
fn nested(levels: usize, map: &str) -> String {
    format!("[[1, 2, 3, 4]]{}", format!(".map(x, {map})").repeat(levels))
}

#[test]
fn values_that_contain_others_many_times_are_compared_within_the_budget() {
    let exceeded = EvalError::Budget.to_string();
    let shared = nested(20, "[x, x, x, x]");
    let keys = nested(6, "[x, x, x, x]").replace("1, 2, 3, 4", "{text: 1}");
    for expression in [
        format!("{shared} == {shared}"),
        format!("{shared} != {shared}"),
        format!("{shared}[0] in {shared}"),
        format!("{shared}.indexOf({shared}[0]) == 0"),
        format!("sets.contains({shared}, {shared})"),
        format!("({shared} + {shared}).distinct().size() == 1"),
        format!("{shared}.flatten(100).size() > 0"),
        format!("{{'a': {shared}}} == {{'a': {shared}}}"),
        format!(
            "lists.range(1000).all(i, {}.indexOf([]) == -1)",
            nested(9, "[x, x, x, x]").replace("1, 2, 3, 4", "''")
        ),
        format!("{keys} == {keys}"),
        "lists.range(5000).map(i, text) == lists.range(5000).map(i, text + '')".to_owned(),
        "lists.range(5000).map(i, [text]).indexOf([text + '']) == 5000".to_owned(),
    ] {
        assert_eq!(evaluate_soon(&expression).err().as_ref(), Some(&exceeded), "{expression}");
    }
}

#[test]
fn lists_that_double_grow_within_the_budget() {
    let exceeded = EvalError::Budget.to_string();
    for expression in [
        format!("{}.size() > 0", nested(24, "x + x")),
        "lists.range(1000).map(i, ints + [i]).size() == 1000".to_owned(),
    ] {
        assert_eq!(evaluate_soon(&expression).err().as_ref(), Some(&exceeded), "{expression}");
    }
    let within = evaluate_soon(&format!("{}[0].size() == 4096", nested(10, "x + x")));
    assert!(matches!(within, Ok(Value::Bool(true))));
}

#[test]
fn comparisons_of_request_data_have_upstream_costs() {
    for (expression, items, cost) in
        [("ints == ints", 1_500_000, 150_002), ("ints.all(i, [ints, ints] == [ints, ints])", 100, 2_802)]
    {
        let ints = Value::list((0..items).map(Value::Int).collect());
        let program = environment().compile(expression).unwrap();
        let (result, found) = program.evaluate(&[("ints", ints)], BUDGET, &|| false);
        assert!(result.is_ok());
        assert_eq!(found, cost, "{expression}");
    }
}

#[test]
fn loops_end_with_their_budget() {
    let exceeded = EvalError::Budget.to_string();
    for expression in [
        "ints.all(x, ints.all(y, x + y >= 0))",
        "ints.map(x, ints.map(y, ints.filter(z, z > x)))",
        "lists.range(999999).map(x, x)",
        "lists.range(9223372036854775807)",
        "ints.distinct()",
        "sets.equivalent(ints, ints.reverse())",
        "ints.map(x, text).join()",
        "ints.transformMap(k, v, text + text).size()",
    ] {
        let error = evaluate_soon(expression).unwrap_err();
        assert!(error == exceeded || error.starts_with("text is longer"), "{expression}: {error}");
    }
}

#[test]
fn loops_whose_terms_are_free_end_with_their_budget() {
    let exceeded = EvalError::Budget.to_string();
    let term = "has((true ? dyn({}).?none : dyn({}).?none).z)";
    let other = "has((true ? any.?none : any.?none).z)";
    for term in [term, other] {
        let terms = [term; 12].join(" || ");
        let loops = "lists.range(100).exists(i, ".repeat(4);
        let expression = format!("{loops}{terms}))))");
        let program =
            environment().to_builder().variable("any", Type::Dyn).build().compile(&expression).unwrap();
        let any = Value::Map(portico_cel::value::MapBuilder::new().into());
        let (result, cost) = program.evaluate(&[("any", any)], 20_000, &|| false);
        assert_eq!(result.unwrap_err().to_string(), exceeded, "{cost}");
    }
}

#[test]
fn presence_tests_of_choices_have_upstream_costs() {
    let program = environment().to_builder().variable("any", Type::Dyn).build();
    let mut fields = portico_cel::value::MapBuilder::new();
    fields.insert(portico_cel::value::Key::from_value(&Value::text("z")).unwrap(), Value::Int(1));
    let any = Value::Map(fields.into());
    for (expression, cost) in [
        ("has((true ? any : any).z)", 0),
        ("has((true ? any.?none : any.?none).z)", 0),
        ("has((true ? has(any.z) : any).z)", 1),
        ("(true ? has((true ? any : any).z) : false)", 1),
        ("{true: 1}[has((true ? any : any).z)] == 1", 4),
        ("has(any.z)", 1),
        ("(true ? any : any).z == 1", 2),
    ] {
        let program = program.clone().compile(expression).unwrap();
        let (result, found) = program.evaluate(&[("any", any.clone())], BUDGET, &|| false);
        assert!(result.is_ok(), "{expression}");
        assert_eq!(found, cost, "{expression}");
    }
}

#[test]
fn expressions_that_share_a_meter_share_its_free_steps() {
    let together = |expression: &str, length: usize, meter: &Meter| {
        let ints = Value::list((0..100).map(Value::Int).collect());
        let variables = [("text", Value::text("a".repeat(length))), ("ints", ints)];
        let program = environment().compile(expression).unwrap();
        let evaluate = || program.evaluate_metered(&variables, (BUDGET, meter), &|| false);
        let results = (0..300).map(|_| evaluate()).filter(|(result, _)| result.is_ok());
        results.map(|(_, cost)| cost).collect::<Vec<_>>()
    };
    let hashing = "text in {'a': 1}";
    let costs = together(hashing, 100_000, &Meter::new(BUDGET));
    assert!(costs[0] < 10 && costs.iter().sum::<u64>() > 200_000, "{costs:?}");
    let afforded = together(hashing, 100_000, &Meter::new(100_000)).len();
    assert!((100..200).contains(&afforded), "{afforded}");
    for ordinary in [
        "text.startsWith('b') || text.size() < 2000 && text != ''",
        "text.matches('^a+$')",
        "ints.all(x, x >= 0)",
    ] {
        let costs = together(ordinary, 1_000, &Meter::new(u64::MAX));
        assert!(costs.len() == 300 && costs.iter().all(|cost| *cost == costs[0]), "{costs:?}");
    }
}

#[test]
fn calls_whose_failure_is_absorbed_are_charged() {
    let exceeded = EvalError::Budget.to_string();
    let shared = nested(16, "[x, x, x, x]");
    for failing in [
        format!("'%s'.format([{shared}]).size() < 0"),
        "'%s%s%d'.format([text, text, dyn(text)]).size() < 0".to_owned(),
        "'%x%x%d'.format([text, text, dyn(text)]).size() < 0".to_owned(),
        "[dyn(text), dyn(text), dyn(1)].join().size() < 0".to_owned(),
        "text.replace('', text).size() < 0".to_owned(),
        "{'a': 1}[text] < 0".to_owned(),
        "int(text) < 0".to_owned(),
        "double(text) < 0.0".to_owned(),
        "timestamp(text) == timestamp(text)".to_owned(),
        "duration(text) == duration(text)".to_owned(),
        "bool(text)".to_owned(),
        "quantity(text).isInteger()".to_owned(),
        "semver(text).major() < 0".to_owned(),
        "url(text).getHost() == ''".to_owned(),
        "ip(text).family() == 4".to_owned(),
        "cidr(text).ip().family() == 4".to_owned(),
        "text.matches(text + '(')".to_owned(),
        "text.charAt(-1) == ''".to_owned(),
        "text.substring(-1) == ''".to_owned(),
        "string(b'\\xff' + bytes(text)) == ''".to_owned(),
    ] {
        for expression in [
            format!("ints.exists(i, {failing})"),
            format!("ints.all(i, {failing} || i < 0 || {failing})"),
            format!("ints.map(i, {failing}).size() < 0"),
        ] {
            assert_eq!(evaluate_soon(&expression).err().as_ref(), Some(&exceeded), "{expression}");
        }
    }
}

#[test]
fn large_results_are_refused() {
    for expression in [
        "text.replace('a', text)",
        "text.replace('', text)",
        "[text, text, text, text, text, text, text, text].map(x, x + x + x).join(text)",
        "'%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s'.format([text].map(x, [x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x])[0])",
    ] {
        assert!(evaluate_soon(expression).is_err(), "{expression}");
    }
}

#[test]
fn regular_expressions_are_bounded() {
    for expression in
        [r"text.matches('^(a+)+$')", r"text.matches('(a|aa)+b')", r"text.find('(.*)(.*)(.*)b') == ''"]
    {
        let _ = evaluate_soon(expression);
    }
    for refused in [
        r"text.matches('((a{1,100}){1,100}){1,100}')",
        r"text.matches('\\pL{1000}')",
        r"text.find('((\\pL|\\pN){30}){30}') == ''",
    ] {
        assert!(evaluate_soon(refused).is_err(), "{refused}");
    }
}

#[test]
fn numbers_of_any_size_are_cheap() {
    for expression in [
        "quantity('1e2147483647').isGreaterThan(quantity('1e-2147483648'))",
        "quantity('1e2147483647').add(quantity('1n')).isInteger()",
        "'%.99999999f'.format([1e308]).size() > 0",
        "'%.9999999e'.format([1e308]).size() > 0",
        "semver('1.0.0-' + text) == semver('1.0.0')",
    ] {
        let _ = evaluate_soon(expression);
    }
    assert!(matches!(
        evaluate_soon("quantity('1e2147483647').compareTo(quantity('1e2147483646'))"),
        Ok(Value::Int(1))
    ));
}
