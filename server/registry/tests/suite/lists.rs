//! Lists: order, pages, selectors, revisions, forms.

use portico_machinery::{GroupResource, GroupVersionResource, Object};
use portico_store::{Indexer, Key, MetadataIndexer, Resource, Store, Txn, Value};

use crate::harness::{Harness, MERGE, TABLE, object};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn with_maps(names: &[&str]) -> Harness {
    let harness = Harness::open().await;
    for name in names {
        let labelled = format!(
            r#"{{"metadata":{{"name":"{name}","labels":{{"l":"{name}"}}}},"data":{{"k":"{name}"}}}}"#
        );
        assert_eq!(harness.post(MAPS, &labelled).await.code, 201);
    }
    harness
}

#[tokio::test]
async fn a_list_is_in_order_of_names_and_its_items_carry_no_kind() {
    let harness = with_maps(&["c", "a", "b"]).await;
    let list = harness.get(MAPS).await;
    assert_eq!(
        (list.at("kind").as_str(), list.names()),
        ("ConfigMapList", vec!["a".into(), "b".into(), "c".into()])
    );
    assert_eq!(list.at("items.0.kind"), "\"\"");
    assert!(
        list.text.contains(r#""items":[{"metadata":{"name":"a","namespace":"default","uid":""#),
        "{}",
        list.text
    );
    let empty = harness.get("/api/v1/namespaces/none/configmaps").await;
    assert!(empty.text.ends_with("\"items\":[]}\n"), "{}", empty.text);
}

#[tokio::test]
async fn all_pages_show_one_revision() {
    let harness = with_maps(&["a", "b", "c", "d", "e"]).await;
    let first = harness.get(&format!("{MAPS}?limit=2")).await;
    assert_eq!(
        (first.names(), first.at("metadata.remainingItemCount").as_str()),
        (vec!["a".to_owned(), "b".into()], "3")
    );
    harness.post(MAPS, &object("ConfigMap", "bb", "")).await;
    harness.delete(&format!("{MAPS}/d")).await;
    let token = first.at("metadata.continue");
    let second = harness.get(&format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!(
        (second.names(), second.at("metadata.resourceVersion")),
        (vec!["c".to_owned(), "d".into()], first.at("metadata.resourceVersion"))
    );
    let token = second.at("metadata.continue");
    let last = harness.get(&format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!((last.names(), last.at("metadata.continue").as_str()), (vec!["e".to_owned()], "\"\""));
}

#[tokio::test]
async fn pages_with_selectors_of_a_past_state_are_full_and_complete() {
    let harness = Harness::open().await;
    // More objects than one read returns: matching objects are rare at first and dense at the end.
    let is_chosen = |n: usize| n % 300 == 7 || n > 1_390;
    for n in 0..1_400 {
        let label = if is_chosen(n) { "yes" } else { "no" };
        let map = format!(r#"{{"metadata":{{"name":"m{n:04}","labels":{{"chosen":"{label}"}}}}}}"#);
        assert_eq!(harness.post(MAPS, &map).await.code, 201);
    }
    let query = "labelSelector=chosen%3Dyes&limit=4";
    let mut page = harness.get(&format!("{MAPS}?{query}")).await;
    // The later pages come from the log.
    harness.delete(&format!("{MAPS}/m0007")).await;
    let mut names = page.names();
    while page.at("metadata.continue") != "\"\"" {
        let token = page.at("metadata.continue");
        page = harness.get(&format!("{MAPS}?{query}&continue={token}")).await;
        assert_eq!(page.code, 200);
        assert!(page.names().len() == 4 || page.at("metadata.continue") == "\"\"", "{:?}", page.names());
        names.extend(page.names());
    }
    let expected: Vec<String> = (0..1_400).filter(|n| is_chosen(*n)).map(|n| format!("m{n:04}")).collect();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn rare_objects_of_a_past_state_are_found_by_few_reads_of_limited_size() {
    let harness = Harness::open().await;
    let store = harness.registry.store();
    let key = |n: usize| Key::new(&Resource::new("", "configmaps"), "default", &format!("m{n:06}"));
    let json =
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m","namespace":"default","uid":"u"}}"#;
    let indexed = MetadataIndexer.index(&GroupResource::new("", "configmaps"), json.as_bytes()).unwrap();
    let value = Value::new(json.as_bytes(), indexed);
    let made = (0..40_000).map(|n| Txn::create(key(n), value.clone())).collect();
    assert!(store.commit(made).await.iter().all(Result::is_ok));
    let revision = store.revision();
    // Later writes are not part of the past state, which is read from the log.
    store.commit(vec![Txn::create(key(99_999), value)]).await.pop().unwrap().unwrap();
    harness.store.exact_reads();
    let query = "labelSelector=chosen%3Dyes&limit=4&resourceVersionMatch=Exact";
    let page = harness.get(&format!("{MAPS}?{query}&resourceVersion={revision}")).await;
    assert_eq!((page.code, page.names().len()), (200, 0));
    let reads = [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000].map(Some);
    assert_eq!(harness.store.exact_reads(), reads);
}

#[tokio::test]
async fn a_compacted_token_is_expired_and_returns_a_new_token() {
    let harness = with_maps(&["a", "b", "c"]).await;
    let first = harness.get(&format!("{MAPS}?limit=1")).await;
    harness.post(MAPS, &object("ConfigMap", "bb", "")).await;
    let store = harness.registry.store();
    store.compact(store.revision()).await.unwrap();
    let token = first.at("metadata.continue");
    let gone = harness.get(&format!("{MAPS}?limit=1&continue={token}")).await;
    assert_eq!((gone.code, gone.at("reason").as_str()), (410, "Expired"));
    let token = gone.at("metadata.continue");
    assert_eq!(harness.get(&format!("{MAPS}?continue={token}")).await.names(), ["b", "bb", "c"]);
}

#[tokio::test]
async fn selectors_filter_and_unknown_fields_are_reported() {
    let harness = with_maps(&["a", "b", "c"]).await;
    for (query, names) in [
        ("labelSelector=l%21%3Da", vec!["b", "c"]),
        ("labelSelector=l+in+(a,c)", vec!["a", "c"]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("fieldSelector=metadata.namespace%21%3Ddefault", vec![]),
    ] {
        assert_eq!(harness.get(&format!("{MAPS}?{query}")).await.names(), names, "{query}");
    }
    let unknown = harness.get(&format!("{MAPS}?fieldSelector=data.k%3Dx")).await;
    assert_eq!(
        unknown.at("message"),
        "\"data.k\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    let typed = harness.get("/api/v1/namespaces?fieldSelector=spec.x%3Dy").await;
    assert_eq!((typed.code, typed.at("message").as_str()), (400, "field label not supported: spec.x"));
    assert_eq!(
        harness.get("/api/v1/namespaces?fieldSelector=status.phase%3DActive").await.names(),
        ["default"]
    );
}

#[tokio::test]
async fn a_list_at_a_revision_shows_that_state_and_a_future_revision_times_out() {
    let harness = with_maps(&["a"]).await;
    let before = harness.get(MAPS).await.at("metadata.resourceVersion");
    harness.post(MAPS, &object("ConfigMap", "b", "")).await;
    harness.patch(&format!("{MAPS}/a"), MERGE, r#"{"data":{"k":"new"}}"#).await;
    let exact = harness.get(&format!("{MAPS}?resourceVersion={before}&resourceVersionMatch=Exact")).await;
    assert_eq!((exact.names(), exact.at("items.0.data.k").as_str()), (vec!["a".to_owned()], "a"));
    let newer = harness.get(&format!("{MAPS}?resourceVersion={before}")).await;
    assert_eq!(newer.names(), ["a", "b"]);
    let future = harness.get(&format!("{MAPS}?resourceVersion=999999")).await;
    assert_eq!(
        (future.code, future.at("details.causes.0.reason").as_str()),
        (504, "ResourceVersionTooLarge")
    );
    assert_eq!(harness.get(&format!("{MAPS}?resourceVersion=x")).await.code, 400);
}

#[tokio::test]
async fn a_long_list_is_sent_in_pieces_of_one_document() {
    let harness = Harness::open().await;
    let big = "x".repeat(20_000);
    for n in 0..20 {
        harness
            .post(MAPS, &object("ConfigMap", &format!("m{n:02}"), &format!(r#","data":{{"k":"{big}"}}"#)))
            .await;
    }
    let list = harness.get(MAPS).await;
    assert!(list.text.len() > 400_000);
    assert_eq!(list.names().len(), 20);
}

#[tokio::test]
async fn a_table_has_a_row_for_each_object_and_the_requested_objects() {
    let harness = with_maps(&["a", "b"]).await;
    let table = harness.request("GET", MAPS, TABLE, "", "").await;
    assert_eq!((table.at("rows.1.cells.0").as_str(), table.at("rows.1.cells.1").as_str()), ("b", "1"));
    let none = harness.request("GET", &format!("{MAPS}?includeObject=None"), TABLE, "", "").await;
    assert_eq!(none.at("rows.0.object"), "null");
    let whole = harness.request("GET", &format!("{MAPS}?includeObject=Object"), TABLE, "", "").await;
    assert_eq!(whole.at("rows.0.object.data.k"), "a");
    let reply = harness.request("GET", &format!("{MAPS}?includeObject=Some"), TABLE, "", "").await;
    assert!(reply.at("message").starts_with("Unable to convert to Table as requested: includeObject"));
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = harness.request("GET", MAPS, metadata, "", "").await;
    assert_eq!(
        (list.at("kind").as_str(), list.at("items.0.kind").as_str()),
        ("PartialObjectMetadataList", "PartialObjectMetadata")
    );
}

#[tokio::test]
async fn a_namespace_that_changes_the_path_is_refused_as_by_upstreams_storage() {
    let harness = Harness::open().await;
    for (rest, key) in [
        ("../configmaps", "/configmaps/.."),
        ("./configmaps", "/configmaps/."),
        ("../configmaps/x", "/configmaps/../x"),
    ] {
        let answer = harness.get(&format!("/api/v1/namespaces/{rest}")).await;
        let expected = format!(
            r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"invalid key: \"{key}\"","code":500}}"#
        );
        assert_eq!((answer.code, answer.text.trim_end()), (500, expected.as_str()), "{rest}");
    }
    assert_eq!(harness.get("/api/v1/namespaces/../namespaces/default").await.code, 404);
}

#[tokio::test]
async fn a_past_list_with_a_name_returns_that_object_and_reads_few_others() {
    let harness = Harness::open().await;
    for n in 0..30 {
        let map = object("ConfigMap", &format!("m{n:02}"), "");
        assert_eq!(harness.post(MAPS, &map).await.code, 201);
    }
    let maps = GroupVersionResource::new("", "v1", "configmaps");
    let served = harness.registry.objects().by_resource(&maps).unwrap();
    let revision = harness.store.revision();
    harness.store.exact_reads();
    for (name, found) in [("m17", &["m17"][..]), ("m00", &["m00"]), ("m29", &["m29"]), ("m", &[]), ("x", &[])]
    {
        let page = harness.registry.list_past(&served, ("default", name), revision, (None, 2)).await.unwrap();
        let names: Vec<_> = page.objects.iter().map(Object::name).collect();
        assert_eq!((names.as_slice(), page.next), (found, None), "{name}");
        assert_eq!(harness.store.exact_reads(), [Some(2)], "{name}");
    }
}
