//! Each function of the libraries pays for what it reads and copies: its cost, and the steps that are charged beyond it, grow
//! with large arguments.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use portico_cel::function::Overload;
use portico_cel::library;
use portico_cel::types::DeclKind;
use portico_cel::value::{Key, MapBuilder, from_json};
use portico_cel::{DeclType, Environment, EvalError, Type, Value};

/// Calls of a function in one evaluation.
const CALLS: usize = 20;
/// Bytes of each text.
const TEXT: usize = 200_000;
/// Items of each list, and entries of each map.
const ITEMS: usize = 5_000;
/// Maximum cost of an evaluation.
const BUDGET: u64 = 1_000_000;
/// Bytes that may be read for a unit of cost.
const READ_PER_UNIT: usize = 4 * 1024;
/// Bytes that may be allocated for a unit of cost.
const ALLOCATED_PER_UNIT: u64 = 4 * 1024;
/// Items that may be visited for a unit of cost.
const ITEMS_PER_UNIT: usize = 10;
/// Bytes that may be allocated in addition.
const FREE_BYTES: u64 = 4 * 1024 * 1024;

/// Overloads that visit a constant number of items.
const CONSTANT: &[&str] = &[
    "type",
    "to_dyn",
    "size_list",
    "list_size",
    "size_map",
    "map_size",
    "list_slice",
    "list_first",
    "list_last",
    "optional_of",
    "optional_ofNonZeroValue",
    "in_map",
];
/// Functions whose arguments are determined by the evaluator, and functions that only macros call.
const INTERNAL: &[&str] =
    &["_?_:_", "_&&_", "_||_", "!_", "-_", "_[_]", "_[?_]", "_?._", "@not_strictly_false", "cel.@mapInsert"];

/// Returns the name of a variable with a string that a function reads to its end.
fn text_of(function: &str) -> &'static str {
    match function {
        "int" | "uint" | "double" | "quantity" | "isQuantity" => "digits",
        "duration" => "spans",
        "url" | "isURL" => "address",
        "semver" | "isSemver" => "version",
        name if name.starts_with("get") => "zone",
        _ => "text",
    }
}

/// Returns the name of a variable of a type, if there is one.
fn argument(function: &str, ty: &Type) -> Option<&'static str> {
    Some(match ty {
        Type::Bool => "true",
        Type::Int => "i",
        Type::Uint => "1u",
        Type::Double => "1.5",
        Type::String => text_of(function),
        Type::Param(_) | Type::Dyn => "text",
        Type::Bytes => "blob",
        Type::Timestamp => "time",
        Type::Duration => "span",
        Type::List(items) => match &**items {
            Type::Int => "ints",
            Type::String | Type::Dyn | Type::Param(_) => "texts",
            Type::List(_) => "lists",
            items if items.optional_of().is_some() => "optionals",
            _ => return None,
        },
        Type::Map(_) => "entries",
        other => match other.name() {
            library::url::TYPE => "link",
            library::quantity::TYPE => "amount",
            library::semver::TYPE => "release",
            library::ip::TYPE => "ip('10.0.0.1')",
            library::cidr::TYPE => "cidr('10.0.0.0/8')",
            library::format::TYPE => "format.uri()",
            _ => return None,
        },
    })
}

/// Returns a call of an overload with large arguments, and the names of these.
fn call(function: &str, overload: &Overload) -> Option<(String, Vec<&'static str>)> {
    let arguments: Vec<&str> =
        overload.parameters.iter().map(|ty| argument(function, ty)).collect::<Option<_>>()?;
    let written = match (&arguments[..], function) {
        (_, name) if INTERNAL.contains(&name) => return None,
        (_, "@sortByAssociatedKeys") => "texts.sortBy(x, x)".to_owned(),
        ([one, two], "@in") => format!("({one} in {two})"),
        ([one, two], name) if name.starts_with('_') => format!("({one} {} {two})", name.trim_matches('_')),
        ([receiver, rest @ ..], name) if overload.receiver => {
            format!("{receiver}.{name}({})", rest.join(", "))
        }
        (all, name) => format!("{name}({})", all.join(", ")),
    };
    Some((written, arguments))
}

fn environment() -> Environment {
    let optional = Type::list(Type::optional(Type::Int));
    let names = ["text", "digits", "spans", "address", "version", "zone"];
    let texts = names.map(|name| (name, Type::String));
    let others = [
        ("blob", Type::Bytes),
        ("time", Type::Timestamp),
        ("span", Type::Duration),
        ("ints", Type::list(Type::Int)),
        ("texts", Type::list(Type::String)),
        ("lists", Type::list(Type::list(Type::Int))),
        ("optionals", optional),
        ("entries", Type::map(Type::String, Type::Int)),
        ("link", Type::object(library::url::TYPE)),
        ("amount", Type::object(library::quantity::TYPE)),
        ("release", Type::object(library::semver::TYPE)),
    ];
    // The first library is the standard library, which each environment has.
    let libraries = library::all().into_iter().skip(1);
    let builder =
        libraries.fold(Environment::builder(), |builder, library| builder.library(library).unwrap());
    texts.into_iter().chain(others).fold(builder, |builder, (name, ty)| builder.variable(name, ty)).build()
}

fn variables() -> Vec<(&'static str, Value<'static>)> {
    let ints = || (0..i64::try_from(ITEMS).unwrap()).map(Value::Int);
    let entry = |(at, value): (usize, Value<'static>)| {
        (Key::from_value(&Value::text(format!("k{at}"))).unwrap(), value)
    };
    let mut all = vec![
        ("text", Value::text("a".repeat(TEXT))),
        ("digits", Value::text("0".repeat(TEXT) + "1")),
        ("spans", Value::text("0s".repeat(TEXT / 2))),
        ("address", Value::text(format!("http://a/?{}", "a&".repeat(TEXT / 2)))),
        ("version", Value::text(format!("1.0.0-{}", "a".repeat(TEXT)))),
        ("zone", Value::text("0".repeat(TEXT) + ":00")),
        ("blob", Value::Bytes(vec![b'a'; TEXT].into())),
        ("ints", Value::list(ints().collect())),
        ("texts", Value::list(ints().map(|_| Value::text("a")).collect())),
        ("lists", Value::list(ints().map(|item| Value::list(vec![item])).collect())),
        ("optionals", Value::list(ints().map(Value::some).collect())),
        ("entries", Value::Map(ints().enumerate().map(entry).collect::<MapBuilder<'_>>().into())),
    ];
    for (name, expression) in [
        ("link", "url(address)"),
        ("amount", "quantity('1' + digits)"),
        ("release", "semver(version)"),
        ("time", "timestamp(0)"),
        ("span", "duration('1s')"),
    ] {
        let value = environment().compile(expression).unwrap().run(&all).unwrap();
        all.push((name, value));
    }
    all
}

/// Returns cost and allocated bytes of calls in a loop, which absorbs their failures. Returns `None` if the budget is
/// insufficient for the calls.
fn work(
    environment: &Environment,
    written: &str,
    variables: &[(&str, Value<'static>)],
) -> Option<(u64, u64)> {
    let expression = format!("lists.range({CALLS}).exists(i, [{written}].size() == 0)");
    let program = environment.compile(&expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let mut outcome = None;
    let allocated = allocation_counter::measure(|| {
        let (result, cost) = program.evaluate(variables, BUDGET, &|| false);
        outcome = Some((matches!(result, Err(EvalError::Budget)), cost));
    });
    let (exceeded, cost) = outcome.unwrap();
    (!exceeded).then_some((cost, allocated.bytes_total))
}

/// Returns the minimum cost of calls with these arguments.
fn minimum_cost(overload: &Overload, arguments: &[&str]) -> u64 {
    let of = |argument: &&str| match *argument {
        "text" | "digits" | "spans" | "address" | "version" | "zone" | "blob" | "link" | "amount"
        | "release" => TEXT / READ_PER_UNIT,
        "ints" | "texts" | "lists" | "optionals" | "entries" if !CONSTANT.contains(&&*overload.id) => {
            ITEMS / ITEMS_PER_UNIT
        }
        _ => 0,
    };
    u64::try_from(CALLS * arguments.iter().map(of).sum::<usize>()).unwrap()
}

#[test]
fn functions_are_charged_for_reads_and_copies() {
    let (environment, variables) = (environment(), variables());
    let (mut tried, mut wrong) = (0, Vec::new());
    for library in library::all().into_iter().filter(|library| library.name != "kubernetes.authorization") {
        for function in library.functions {
            for overload in &function.overloads {
                let Some((written, arguments)) = call(&function.name, overload) else { continue };
                tried += 1;
                let Some((cost, allocated)) = work(&environment, &written, &variables) else { continue };
                let least = minimum_cost(overload, &arguments);
                if cost < least || allocated > cost * ALLOCATED_PER_UNIT + FREE_BYTES {
                    wrong.push(format!(
                        "{}: {written} costs {cost} of {least}, {allocated} bytes",
                        overload.id
                    ));
                }
            }
        }
    }
    assert!(tried > 150, "only {tried} overloads were called");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn operators_and_macros_are_charged_for_reads_and_copies() {
    let (environment, variables) = (environment(), variables());
    for (written, least) in [
        ("text in ['aaaa', 'b']", TEXT / 1024),
        ("text in {'aaaa': 1, 'b': 2}", TEXT / 1024),
        ("{'a': 1}[text]", TEXT / 1024),
        ("entries[?text]", TEXT / 1024),
        ("{text: 1}", TEXT / 1024),
        ("text == 'a'", TEXT / READ_PER_UNIT),
        ("link == link", TEXT / READ_PER_UNIT),
        ("release == release", TEXT / READ_PER_UNIT),
        ("lists == lists", ITEMS / ITEMS_PER_UNIT),
        ("[0].transformMapEntry(j, v, entries)", ITEMS / ITEMS_PER_UNIT),
        ("dyn(text) + dyn(text)", TEXT / 1024),
        ("dyn(texts).sort()", ITEMS / ITEMS_PER_UNIT),
        ("text in dyn(texts)", ITEMS / ITEMS_PER_UNIT),
        ("''.matches(text + string(i))", TEXT / 1024),
        (r"''.matches('\\pL{20}' + string(i))", 10_000),
        ("'%s'.format(texts)", ITEMS / ITEMS_PER_UNIT),
        ("'%.256f%.256f%.256f%.256f'.format([1e-308, 1e-308, 1e-308, 1e-308])", 64),
    ] {
        let Some((cost, allocated)) = work(&environment, written, &variables) else { continue };
        let least = u64::try_from(CALLS * least).unwrap();
        assert!(cost >= least, "{written} costs {cost} of {least}");
        assert!(allocated <= cost * ALLOCATED_PER_UNIT + FREE_BYTES, "{written}: {allocated} for {cost}");
    }
}

#[test]
fn loops_that_end_at_once_copy_nothing() {
    let (environment, variables) = (environment(), variables());
    for written in ["entries.exists(k, true)", "entries.transformMap(k, v, false, v)"] {
        let (cost, allocated) = work(&environment, written, &variables).unwrap();
        assert!(allocated <= cost * 256 + FREE_BYTES / 64, "{written}: {allocated} for {cost}");
    }
}

#[test]
fn expressions_are_charged_for_nested_values() {
    let nested = format!("[[1, 2, 3, 4]]{}", ".map(x, [x, x, x, x])".repeat(7));
    let program = environment().compile(&format!("{nested} == {nested}")).unwrap();
    let (result, cost) = program.evaluate(&[], BUDGET, &|| false);
    assert!(result.is_ok() && cost > 10_000, "{cost}");
}

#[test]
fn long_names_and_bytes_of_data_are_charged() {
    let json = serde_json::json!({"b": "YWFh".repeat(TEXT / 4)});
    let of = |kind| DeclType::map(DeclType::scalar(kind, 1, 1).into(), 1);
    let (bytes, spans) = (of(DeclKind::Bytes), of(DeclKind::Duration));
    let name = "k".repeat(TEXT / 4);
    let cost = |ty: Type, data: &DeclType, written: &str| {
        let data = [("data", from_json(&json, data).unwrap())];
        let environment = Environment::builder().variable("data", Type::map(Type::String, ty)).build();
        let expression = format!("[{}].exists(i, {written})", vec!["0"; 200].join(", "));
        let program = environment.compile(&expression).unwrap();
        let (result, cost) = program.evaluate(&data, BUDGET, &|| false);
        (result.map(|value| value.as_bool().unwrap()), cost)
    };
    for written in ["data.b == b''".to_owned(), format!("has(data.{name})"), format!("'b' in [{name:?}]")] {
        let (result, cost) = cost(Type::Bytes, &bytes, &written);
        let short = written.len() < 100 || written.starts_with("has");
        assert_eq!((result, cost > 20_000), (Ok(false), short), "{cost}");
    }
    let (result, _) = cost(Type::Duration, &spans, "data.b < duration('1s')");
    assert!(result.unwrap_err().to_string().len() < 100);
}
