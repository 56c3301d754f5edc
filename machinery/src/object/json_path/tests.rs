//! Table of paths and upstream's results.

use super::{InvalidJsonPath, JsonPath, Object};

const OBJECT: &str = r#"{"kind":"K","metadata":{"name":"n","labels":{"a.b/c":"d","l":"m"}},
"spec":{"list":["x","y","z"],"numbers":[1,2,3],"empty":[],"null":null,"on":true,"ratio":1.5,"large":1234567.5,"whole":7,
"a.b":"dotted","it's":"quoted","html":{"t":"<a&b>"},
"conds":[{"type":"Synced","status":"False","n":1},{"type":"Ready","status":"True","n":5,"deep":{"er":[{"k":1}]}}]}}"#;

fn first(path: &str) -> Option<String> {
    let object = Object::from_json(OBJECT.as_bytes()).unwrap();
    let path = JsonPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    path.first(&object).map(|found| found.printed())
}

#[test]
fn paths_find_the_same_first_value_as_upstream() {
    let rows = [
        (".kind", Some("K")),
        ("$.kind", Some("K")),
        ("@.kind", Some("K")),
        (".metadata.name", Some("n")),
        (".metadata['name']", Some("n")),
        ("['metadata'].name", Some("n")),
        (".spec['a.b']", None),
        (r".spec['a\.b']", Some("dotted")),
        (r".spec.a\.b", Some("dotted")),
        (r".metadata.labels.a\.b/c", Some("d")),
        (".spec.list", Some(r#"["x","y","z"]"#)),
        (".spec.list[0]", Some("x")),
        (".spec.list[-1]", Some("z")),
        (".spec.list[-1:]", Some("z")),
        (".spec.list[1:2]", Some("y")),
        (".spec.list[:-1]", Some("x")),
        (".spec.list[1:]", Some("y")),
        (".spec.list[2::2]", Some("z")),
        (".spec.list[]", Some("x")),
        (".spec.list[*]", Some("x")),
        (".spec.list[2,0]", Some("z")),
        (".spec.list[2, 0]", Some("z")),
        (".spec['whole','on']", Some("7")),
        (".spec.list[3]", None),
        (".spec.list[-4]", None),
        (".spec.list[2:1]", None),
        (".spec.list[0:0]", None),
        (".spec.list[0:2:0]", None),
        (".spec.empty[0]", None),
        (".spec.empty[*]", None),
        (".spec.missing[0]", None),
        (".spec.null", Some("<no value>")),
        (".spec.null[0]", None),
        (".spec.null.x", None),
        (".spec[0]", None),
        (".spec.on", Some("true")),
        (".spec.ratio", Some("1.5")),
        (".spec.large", Some("1.2345675e+06")),
        (".spec.html", Some(r#"{"t":"\u003ca\u0026b\u003e"}"#)),
        (".metadata.labels.*", Some("d")),
        (".kind.*", Some("75")),
        ("..name", Some("n")),
        ("..status", Some("False")),
        ("..[0]", None),
        (r#".spec.conds[?(@.type=="Ready")].status"#, Some("True")),
        (r#".spec.conds[?(@.type == 'Ready')].status"#, Some("True")),
        (r#".spec.conds[?(@.type!="Ready")].status"#, Some("False")),
        (".spec.conds[?(@.n>1)].type", Some("Ready")),
        (".spec.conds[?(@.n>=1)].type", Some("Synced")),
        (".spec.conds[?(@.n<2)].type", Some("Synced")),
        (".spec.conds[?(@.n<=0)].type", None),
        (".spec.conds[?(@.n==5)].type", Some("Ready")),
        (".spec.conds[?(@.n==5.0)].type", None),
        (".spec.conds[?(@.deep)].type", Some("Ready")),
        (".spec.conds[?(@.deep.er[0].k==1)].type", Some("Ready")),
        (".spec.conds[?(@.type[9])].type", Some("Synced")),
        (".spec.conds[?(@.none)].type", None),
        (r#".spec.conds[?(@.n=="x")].type"#, None),
        (r#".spec.conds[?(@.type="Ready")].type"#, None),
        (r#".spec.numbers[?(@>2)]"#, Some("3")),
        (r#".spec.list[?(@=="y")]"#, Some("y")),
        (r#".spec[?(@.type=="x")]"#, None),
        ("spec.list", None),
        ("'text'", Some("text")),
        (r#""a\tb\u0041""#, Some("a\tbA")),
        ("5", Some("5")),
        ("", Some(OBJECT)),
        (".kind}, {.metadata.name", Some("K")),
        (".kind}, {.spec.list[9]", None),
    ];
    for (path, want) in rows {
        let found = first(path);
        match want {
            Some(OBJECT) => assert!(found.unwrap().starts_with(r#"{"kind":"K","metadata""#)),
            want => assert_eq!(found.as_deref(), want, "{path}"),
        }
    }
}

#[test]
fn paths_that_upstream_rejects_are_rejected() {
    use InvalidJsonPath as Invalid;
    let rows = [
        (".a[", Invalid::Unclosed("a bracket")),
        (".a['x'", Invalid::Unclosed("a bracket")),
        (".a\n", Invalid::Unclosed("an action")),
        (".a[?(@.b)", Invalid::Unclosed("a filter's bracket")),
        (".a[?(@.b", Invalid::Unclosed("a filter")),
        (".a[x]", Invalid::InvalidIndex("x".into())),
        (".a[1:2:3:4]", Invalid::InvalidIndex("1:2:3:4".into())),
        (".a[-]", Invalid::InvalidIndex("-".into())),
        (r#".a["b"]"#, Invalid::InvalidIndex(r#""b""#.into())),
        ("....a", Invalid::DoubleRecursive),
        ("..*", Invalid::Unexpected('*')),
        (r#".a[?(@.b=="x" && @.c=="y")]"#, Invalid::Unexpected('&')),
        ("1.2.3", Invalid::InvalidNumber("1.2.3".into())),
        (r#""\q""#, Invalid::InvalidQuotes(r#""\q""#.into())),
        ("'x", Invalid::Unclosed("a quoted text")),
    ];
    for (path, want) in rows {
        assert_eq!(JsonPath::parse(path).unwrap_err(), want, "{path}");
    }
    assert_eq!(JsonPath::parse(&".a".repeat(10_000)).unwrap_err(), Invalid::TooLong);
}

#[test]
fn a_path_that_visits_too_many_values_finds_nothing() {
    let deep = format!(r#"{{"a":{}{}}}"#, r#"{"a":"#.repeat(100), "1".to_owned() + &"}".repeat(100));
    let object = Object::from_json(deep.as_bytes()).unwrap();
    assert!(JsonPath::parse("..a").unwrap().first(&object).is_some());
    assert!(JsonPath::parse(&"..a".repeat(20)).unwrap().first(&object).is_none());
}
