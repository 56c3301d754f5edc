//! The namespace that all pages share, the start page, search, and users without cluster-wide permissions.

use portico_tests::browser::key;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Browser, Portico};
use serde_json::{Value, json};

use super::browsing::{address, at, complaints, log_in, map, picture};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Creates the namespace `team-a` with a ConfigMap, and lets alice read in it.
async fn team(portico: &Portico) {
    let admin = portico.admin();
    let namespace = json!({"metadata": {"name": "team-a"}});
    assert_eq!(admin.post("/api/v1/namespaces", &namespace).await.status, 201);
    let created =
        admin.post("/api/v1/namespaces/team-a/configmaps", &json!({"metadata": {"name": "of-team-a"}})).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let binding = json!({"metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}]});
    let bound = admin.post(&format!("{RBAC}/namespaces/team-a/rolebindings"), &binding).await;
    assert_eq!(bound.status, 201, "{}", bound.text());
}

async fn value(browser: &Browser, script: &str) -> Value {
    browser.run(script, json!([])).await
}

async fn type_text(browser: &Browser, text: &str) {
    browser.wait_for_script("the palette", "return document.activeElement?.id === 'palette'").await;
    browser.fill("#palette", text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chosen_namespace_stays_on_all_pages_and_after_a_reload() {
    let portico = Portico::start().await;
    team(&portico).await;
    portico.admin().post(CONFIG_MAPS, &map("of-default", json!({}))).await;
    let Some(browser) = at(&portico, "objects/core/v1/configmaps").await else { return };
    browser.wait_for_text("of-default").await;
    browser.wait_for_text("of-team-a").await;
    browser.press(&["n"]).await;
    browser
        .wait_for_script("the namespaces", "return document.querySelectorAll('.choices li').length > 3")
        .await;
    type_text(&browser, "team").await;
    picture(&browser, "namespace").await;
    browser.press(&[key::ENTER]).await;
    browser
        .wait_for_script("other rows are gone", "return !document.body.innerText.includes('of-default')")
        .await;
    browser.wait_for_text("of-team-a").await;
    let hash = value(&browser, "return location.hash").await;
    assert_eq!(hash, json!("#/objects/core/v1/configmaps?namespace=team-a"));
    for page in ["access", "objects", "objects/core/v1/secrets"] {
        browser.open(&address(&portico, page)).await;
        browser
            .wait_for_script(
                page,
                "return document.getElementById('namespace')?.textContent.includes('team-a')",
            )
            .await;
    }
    browser.run("location.reload()", json!([])).await;
    browser.wait_for_text("in namespace team-a").await;
    // An address with a namespace selects it.
    browser.open(&address(&portico, "objects/core/v1/configmaps?namespace=default")).await;
    browser.wait_for_text("of-default").await;
    let chosen = value(&browser, "return document.querySelector('#namespace b').textContent").await;
    assert_eq!(chosen, json!("default"));
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_one_namespace_selects_it_and_sees_its_objects() {
    let portico = Portico::start().await;
    team(&portico).await;
    let Some(browser) = Browser::start().await else { return };
    browser.open(&address(&portico, "")).await;
    log_in(&browser, "alice-token").await;
    browser.wait_for_text("Choose a namespace").await;
    picture(&browser, "choose").await;
    assert_eq!(value(&browser, "return document.querySelectorAll('.failure').length").await, json!(0));
    let pages = "return [...document.querySelectorAll('#nav a')].map((one) => one.textContent)";
    assert_eq!(value(&browser, pages).await, json!(["Objects", "Access"]));
    browser.fill("#choose-namespace", "team-a").await;
    browser.press(&[key::ENTER]).await;
    let counted = "return document.querySelector('[data-kind=configmaps]')?.textContent.endsWith('2')";
    browser.wait_for_script("the number of ConfigMaps", counted).await;
    assert_eq!(value(&browser, "return document.querySelector('[data-kind=secrets]')").await, Value::Null);
    // The selection applies to lists, which hide actions without permission.
    browser.open(&address(&portico, "objects/core/v1/configmaps")).await;
    browser.wait_for_text("of-team-a").await;
    let actions = "return document.querySelectorAll('#new, .grid input').length";
    assert_eq!(value(&browser, actions).await, json!(0));
    browser.press(&["j", key::ENTER]).await;
    browser.wait_for_text("No dependents.").await;
    let tabs = "return [...document.querySelectorAll('[role=tab]')].map((one) => one.textContent)";
    assert_eq!(value(&browser, tabs).await, json!(["Summary", "YAML", "Field owners"]));
    assert_eq!(value(&browser, "return document.querySelectorAll('.actions button').length").await, json!(0));
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_page_counts_at_once_and_remembers_favorites() {
    let portico = Portico::start().await;
    portico.admin().post(CONFIG_MAPS, &map("one-more", json!({}))).await;
    let Some(browser) = at(&portico, "objects").await else { return };
    browser.wait_for_script("all counts", COUNTED).await;
    let list = portico.admin().get("/api/v1/configmaps").await.json();
    let number = list["items"].as_array().unwrap().len();
    let shown =
        value(&browser, "return document.querySelector('[data-kind=configmaps]').lastChild.textContent")
            .await;
    assert_eq!(shown, json!(number.to_string()));
    browser.click("[data-kind='secrets'] .star").await;
    browser.wait_for_text("Favorites").await;
    browser.run("location.reload()", json!([])).await;
    let first = "return document.querySelector('#kinds section')?.innerText.replaceAll('\\n', ' ').startsWith('Favorites ★ Secret')";
    browser.wait_for_script("the favorite", first).await;
    browser.click("#used").await;
    browser
        .wait_for_script("no kind without objects", "return document.querySelector('#kinds .empty') === null")
        .await;
    assert_eq!(complaints(&browser).await, Vec::<String>::new());
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn search_finds_kinds_by_short_name_and_objects_by_part_of_their_name() {
    let portico = Portico::start().await;
    team(&portico).await;
    portico.admin().post(CONFIG_MAPS, &map("team-settings", json!({}))).await;
    let Some(browser) = at(&portico, "objects").await else { return };
    browser.press(&[":"]).await;
    type_text(&browser, "cm").await;
    browser
        .wait_for_script(
            "the kind",
            "return document.querySelector('.choices li')?.innerText.startsWith('ConfigMap')",
        )
        .await;
    picture(&browser, "palette").await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for_text("of-team-a").await;
    browser.press(&["/"]).await;
    type_text(&browser, "team-").await;
    browser.wait_for_text("ConfigMap · default").await;
    browser.wait_for_text("ConfigMap · team-a").await;
    picture(&browser, "search").await;
    browser.press(&[key::ESCAPE]).await;
    // With a selected namespace, only its objects are searched.
    browser.open(&address(&portico, "objects/core/v1/configmaps?namespace=default")).await;
    browser.wait_for_text("team-settings").await;
    browser.press(&["/"]).await;
    type_text(&browser, "team-").await;
    browser.wait_for_text("ConfigMap · default").await;
    assert!(!browser.text().await.contains("ConfigMap · team-a"));
    browser.press(&[key::ENTER]).await;
    browser
        .wait_for_script("the object", "return document.querySelector('h1')?.textContent === 'team-settings'")
        .await;
    // Without a match, Enter searches the other namespaces.
    browser.press(&["/"]).await;
    type_text(&browser, "of-team-a").await;
    browser.wait_for_text("No match in namespace default.").await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for_text("ConfigMap · team-a").await;
    browser.quit().await;
}

const COUNTED: &str = "const rows = [...document.querySelectorAll('#kinds li')];
    return rows.length > 50 && rows.every((row) => !row.textContent.endsWith('…'))";

#[tokio::test(flavor = "multi_thread")]
async fn a_count_changes_the_text_of_its_row_and_keeps_the_link() {
    let portico = Portico::start().await;
    let Some(browser) = at(&portico, "objects").await else { return };
    browser.wait_for_script("all counts", COUNTED).await;
    let before = "window.row = document.querySelector('[data-kind=configmaps]');
        window.before = window.row.lastChild.textContent";
    browser.run(before, json!([])).await;
    assert_eq!(portico.admin().post(CONFIG_MAPS, &map("one-more", json!({}))).await.status, 201);
    browser.press(&["r"]).await;
    let is_new =
        "return document.querySelector('[data-kind=configmaps]').lastChild.textContent !== window.before";
    browser.wait_for_script("the new count", is_new).await;
    assert_eq!(value(&browser, "return window.row.isConnected").await, json!(true));
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_namespace_is_named_and_cluster_wide_kinds_have_a_heading() {
    let portico = Portico::start().await;
    let Some(browser) = at(&portico, "objects?namespace=nowhere").await else { return };
    browser.wait_for_text("There is nothing in namespace nowhere that you may see.").await;
    let heading = "return document.querySelector('[data-kind=namespaces]').closest('section').querySelector('h2').textContent";
    assert_eq!(value(&browser, heading).await, json!("Not in a namespace"));
    browser.click(".offer button").await;
    type_text(&browser, "kube-system").await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for_text("in namespace kube-system").await;
    browser.wait_for_script("no offer", "return document.querySelector('.offer') === null").await;
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn access_lists_bindings_of_all_namespaces_and_follows_the_chosen_one() {
    let portico = Portico::start().await;
    team(&portico).await;
    let page = "access?verb=get&resource=configmaps";
    let Some(browser) = at(&portico, page).await else { return };
    browser.wait_for_text("alice").await;
    let row = "const row = [...document.querySelectorAll('#who-can tr')].find((one) => one.innerText.includes('alice'));
        return [row.children[2].textContent, ...[...row.querySelectorAll('a')].map((one) => one.hash)]";
    let role = "#/object/rbac.authorization.k8s.io/v1/clusterroles/-/view";
    let binding = "#/object/rbac.authorization.k8s.io/v1/rolebindings/team-a/readers";
    assert_eq!(value(&browser, row).await, json!(["team-a", role, binding]));
    for (typed, hash) in [("team-a", "&namespace=team-a"), ("default", "&namespace=default")] {
        browser.press(&["n"]).await;
        type_text(&browser, typed).await;
        browser.press(&[key::ENTER]).await;
        let follows = format!("return location.hash === '#/{page}{hash}'");
        browser.wait_for_script("the address follows", &follows).await;
        let field = format!("return document.querySelector('main #namespace')?.value === '{typed}'");
        browser.wait_for_script("the field follows", &field).await;
    }
    browser.wait_for_script("only this namespace", "return document.querySelector('#who-can table') && !document.getElementById('who-can').innerText.includes('alice')").await;
    browser.quit().await;
}
