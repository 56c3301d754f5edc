//! Reads of custom resources: tables, metadata, lists and selections.

use crate::custom_resources::{TABS, open_with_definition, tab};
use crate::harness::{Harness, JSON, MERGE, METADATA, PROTOBUF, Reply, TABLE, next};

/// Version of CronTabs that preserves all fields, with these further members.
fn version(members: &str) -> String {
    format!(
        r#"{{"name":"v1","served":true,"storage":true,{members}"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
        "spec":{{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{{
        "colour":{{"type":"string"}},"size":{{"type":"integer"}},"on":{{"type":"boolean"}}}}}}}}}}}}}}"#
    )
}

/// Harness with three CronTabs: `a` is red, `b` is blue and large, `c` has no fields.
async fn with_tabs(members: &str) -> Harness {
    let harness = open_with_definition(&version(members)).await;
    let rows =
        [("a", r#""colour":"red","size":0,"on":true"#), ("b", r#""colour":"blue","size":12"#), ("c", "")];
    for (name, spec) in rows {
        let made = harness
            .post(TABS, &tab("v1", spec).replace(r#""name":"t""#, &format!(r#""name":"{name}""#)))
            .await;
        assert_eq!(made.code, 201, "{}", made.text);
    }
    harness
}

const SELECTABLE: &str =
    r#""selectableFields":[{"jsonPath":".spec.colour"},{"jsonPath":".spec.size"},{"jsonPath":".spec.on"}],"#;

#[tokio::test]
async fn a_table_has_the_columns_of_its_version() {
    let harness = with_tabs(
        r#""additionalPrinterColumns":[
        {"name":"Colour","type":"string","jsonPath":".spec.colour"},
        {"name":"Size","type":"integer","format":"int32","description":"how big","priority":1,"jsonPath":".spec.size"},
        {"name":"Broken","type":"string","jsonPath":".spec.list[x]"},
        {"name":"Lost","type":"string","jsonPath":".kind"}],"#,
    )
    .await;
    let table = harness.request("GET", TABS, TABLE, "", "").await.object();
    let columns = table.at(&["columnDefinitions"]);
    let names: Vec<&str> = columns.items().map(|column| column.field("name").str()).collect();
    assert_eq!(names, ["Name", "Colour", "Size"], "a column with an invalid path removes all later columns");
    let size = columns.items().nth(2).unwrap();
    assert_eq!((size.field("format").str(), size.field("priority").i64()), ("int32", Some(1)));
    assert_eq!(size.field("description").str(), "how big");
    let cells: Vec<String> = table.at(&["rows"]).items().map(|row| row.field("cells").json()).collect();
    assert_eq!(cells, [r#"["a","red",0]"#, r#"["b","blue",12]"#, r#"["c",null,null]"#]);
    assert_eq!(
        table.at(&["rows"]).items().next().unwrap().field("object").field("kind").str(),
        "PartialObjectMetadata"
    );
}

#[tokio::test]
async fn a_version_without_columns_has_an_age_column() {
    let harness = with_tabs("").await;
    let table = harness.request("GET", &format!("{TABS}/a?includeObject=Object"), TABLE, "", "").await;
    assert_eq!(
        (table.at("columnDefinitions.1.name").as_str(), table.at("rows.0.cells.0").as_str()),
        ("Age", "a")
    );
    assert_eq!(table.at("rows.0.object.spec.colour"), "red");
    let none = harness.request("GET", &format!("{TABS}/a?includeObject=None"), TABLE, "", "").await;
    assert!(none.text.contains(r#""object":null"#), "{}", none.text);
}

#[tokio::test]
async fn lists_contain_an_empty_token_and_the_kind_of_each_item() {
    let harness = with_tabs("").await;
    let all = harness.get(TABS).await;
    assert!(all.text.contains(r#""continue":"""#), "{}", all.text);
    assert_eq!((all.at("kind").as_str(), all.at("items.2.kind").as_str()), ("CronTabList", "CronTab"));
    let page = harness.get(&format!("{TABS}?limit=2")).await;
    assert_eq!((page.names().len(), page.at("metadata.remainingItemCount").as_str()), (2, "1"));
    let rest = harness.get(&format!("{TABS}?limit=2&continue={}", page.at("metadata.continue"))).await;
    assert_eq!(rest.names(), ["c"]);
    let metadata =
        harness.request("GET", TABS, &METADATA.replace("Metadata;", "MetadataList;"), "", "").await;
    assert_eq!((metadata.at("kind").as_str(), metadata.names().len()), ("PartialObjectMetadataList", 3));
    assert!(!metadata.text.contains(r#""continue""#), "{}", metadata.text);
}

#[tokio::test]
async fn selectable_fields_work_and_other_fields_are_refused() {
    let harness = with_tabs(SELECTABLE).await;
    let rows: [(&str, &[&str]); 8] = [
        ("spec.colour%3Dred", &["a"]),
        ("spec.colour!%3Dred", &["b", "c"]),
        ("spec.colour%3D", &["c"]),
        ("spec.size%3D12", &["b"]),
        ("spec.size%3D0", &["a"]),
        ("spec.on%3Dtrue", &["a"]),
        ("spec.colour%3Dblue,metadata.name%3Db", &["b"]),
        ("metadata.namespace%3Ddefault,metadata.name!%3Da", &["b", "c"]),
    ];
    for (selector, want) in rows {
        assert_eq!(
            harness.get(&format!("{TABS}?fieldSelector={selector}")).await.names(),
            want,
            "{selector}"
        );
    }
    for verb in ["", "watch=true&"] {
        let refused = harness.get(&format!("{TABS}?{verb}fieldSelector=spec.ratio%3D2")).await;
        assert_eq!(
            (refused.code, refused.at("message").as_str()),
            (400, "field label not supported: spec.ratio")
        );
    }
    let deleted = harness.delete(&format!("{TABS}?fieldSelector=spec.colour%3Dred")).await;
    assert_eq!((deleted.names(), deleted.at("kind").as_str()), (vec!["a".to_owned()], "CronTabList"));
    assert_eq!(harness.get(TABS).await.names(), ["b", "c"]);
}

#[tokio::test]
async fn pages_of_a_past_state_with_field_selectors_read_only_the_needed_objects() {
    let harness = open_with_definition(&version(SELECTABLE)).await;
    let tabs = async |colour: &str, names: std::ops::Range<usize>| {
        let tab = tab("v1", &format!(r#""colour":"{colour}""#));
        let (harness, tab) = (&harness, &tab);
        let made = names.map(async |n| {
            harness.post(TABS, &tab.replace(r#""name":"t""#, &format!(r#""name":"t{n:04}""#))).await.code
        });
        assert!(futures::future::join_all(made).await.iter().all(|code| *code == 201));
    };
    tabs("blue", 0..3).await;
    tabs("red", 3..5).await;
    tabs("blue", 5..600).await;
    tabs("red", 600..603).await;
    tabs("blue", 603..1_300).await;
    let query = "fieldSelector=spec.colour%3Dred&limit=2";
    let mut page = harness.get(&format!("{TABS}?{query}")).await;
    assert_eq!(page.names(), ["t0003", "t0004"]);
    // The later pages come from the log and do not show later writes.
    tabs("red", 1_300..1_301).await;
    harness.store.exact_reads();
    let next = async |page: &Reply| {
        let page = harness.get(&format!("{TABS}?{query}&continue={}", page.at("metadata.continue"))).await;
        (page, harness.store.exact_reads())
    };
    for (names, reads) in [(vec!["t0600", "t0601"], 2), (vec!["t0602"], 2)] {
        let found;
        (page, found) = next(&page).await;
        assert_eq!(page.names(), names);
        assert_eq!(found, vec![Some(500); reads]);
    }
    assert_eq!(page.at("metadata.continue").trim_matches('"'), "");
}

#[tokio::test]
async fn a_watch_with_a_selector_reports_objects_that_leave_and_enter_the_selection() {
    let harness = with_tabs(SELECTABLE).await;
    let url = format!("{TABS}?watch=true&fieldSelector=spec.colour%3Dred");
    let mut watched = harness.watch(&url, JSON).await;
    let line = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    assert!(line(next(&mut watched).await.line()).starts_with(r#"{"type":"ADDED""#));
    for (colour, event) in [("blue", "DELETED"), ("red", "ADDED")] {
        harness.patch(&format!("{TABS}/a"), MERGE, &format!(r#"{{"spec":{{"colour":"{colour}"}}}}"#)).await;
        let reported = line(next(&mut watched).await.line());
        assert!(reported.starts_with(&format!(r#"{{"type":"{event}""#)), "{reported}");
    }
}

#[tokio::test]
async fn tables_of_a_watch_contain_columns_only_once() {
    let harness = with_tabs("").await;
    let query =
        "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut watched = harness.watch(&format!("{TABS}?{query}"), TABLE).await;
    let mut lines = Vec::new();
    for _ in 0..4 {
        lines.push(String::from_utf8(next(&mut watched).await.line().to_vec()).unwrap());
    }
    assert!(lines[0].contains(r#""columnDefinitions":[{"#), "{}", lines[0]);
    assert!(lines[1..].iter().all(|line| line.contains(r#""columnDefinitions":null"#)), "{lines:?}");
    assert!(lines[3].starts_with(r#"{"type":"BOOKMARK","object":{"kind":"Table""#), "{}", lines[3]);
    assert!(lines[3].contains(r#""metadata":{"resourceVersion":""#), "a bookmark's table has its revision");
}

#[tokio::test]
async fn custom_resources_have_no_protobuf_but_their_metadata_do() {
    let harness = with_tabs("").await;
    let url = format!("{TABS}/a");
    assert_eq!(harness.answer("GET", &url, PROTOBUF, "", "").await.code, 406);
    let fallback = harness.answer("GET", &url, &format!("{PROTOBUF},{JSON}"), "", "").await;
    assert_eq!((fallback.code, fallback.media_type()), (200, JSON));
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let metadata = harness.answer("GET", &url, &metadata, "", "").await;
    assert_eq!((metadata.code, metadata.media_type()), (200, PROTOBUF));
    assert_eq!(harness.request("POST", TABS, JSON, PROTOBUF, "k8s\0").await.code, 415);
    let strategic = "application/strategic-merge-patch+json";
    assert_eq!(harness.patch(&url, strategic, "{}").await.code, 415);
}

#[tokio::test]
async fn methods_behave_like_upstreams_handlers() {
    let harness = with_tabs(r#""subresources":{"status":{}},"#).await;
    let one = format!("{TABS}/a");
    let more = format!("{one}/status/more");
    for (method, url, code) in [
        ("HEAD", &one, 200),
        ("HEAD", &TABS.to_owned(), 200),
        ("HEAD", &format!("{TABS}/none"), 404),
        ("OPTIONS", &one, 405),
        ("GET", &more, 200),
        ("GET", &format!("{one}/logs"), 404),
        ("POST", &format!("{one}/status"), 405),
        ("PUT", &TABS.to_owned(), 400),
    ] {
        assert_eq!(harness.request(method, url, JSON, JSON, "").await.code, code, "{method} {url}");
    }
    let unnamed = harness.request("PATCH", TABS, JSON, MERGE, "{}").await;
    assert_eq!((unnamed.code, unnamed.at("message").as_str()), (400, "name must be provided"));
    let created = harness.post(&format!("{TABS}/elsewhere"), &tab("v1", "")).await;
    assert_eq!((created.code, created.at("metadata.name").as_str()), (201, "t"));
    let options = harness.request("OPTIONS", &one, JSON, "", "").await;
    assert_eq!(
        options.at("message"),
        r#" is not supported on resources of kind "crontabs.stable.example.com""#
    );
}

#[tokio::test]
async fn new_finalizers_without_a_domain_cause_a_warning() {
    let harness = with_tabs("").await;
    let url = format!("{TABS}/a");
    let held = harness.patch(&url, MERGE, r#"{"metadata":{"finalizers":["bare","x.io/y"]}}"#).await;
    assert_eq!(held.warnings.len(), 1, "{:?}", held.warnings);
    assert!(
        held.warnings[0]
            .starts_with(r#"metadata.finalizers: "bare": prefer a domain-qualified finalizer name"#)
    );
    assert_eq!(harness.patch(&url, MERGE, r#"{"spec":{"size":3}}"#).await.warnings, Vec::<String>::new());
    assert_eq!(harness.delete(&url).await.at("metadata.finalizers.0"), "bare");
    let more = harness.patch(&url, MERGE, r#"{"metadata":{"finalizers":["bare","x.io/y","x.io/z"]}}"#).await;
    assert_eq!((more.code, more.at("details.causes.0.reason").as_str()), (422, "FieldValueForbidden"));
}
