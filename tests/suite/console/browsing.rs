//! The console in a real browser: login, lists, edits, keys, themes and the size of the page.

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use portico_testing::{Fault, TestServer};
use portico_tests::backend::Behavior;
use portico_tests::browser::key;
use portico_tests::http::Http;
use portico_tests::objects::{API_SERVICES, CONFIG_MAPS};
use portico_tests::{Backend, Browser, Portico, binary, report_measurement, wait_until};
use serde_json::{Value, json};

/// Limit for the longest frame while scrolling, in milliseconds: enough on a busy machine, and too little for drawing all rows.
const LONGEST_FRAME: f64 = 5_000.0;

/// Opens a browser, logged in as the administrator, at a page of the console.
pub(super) async fn at(portico: &Portico, page: &str) -> Option<Browser> {
    logged_in(&address(portico, page)).await
}

async fn logged_in(address: &str) -> Option<Browser> {
    let browser = Browser::start().await?;
    browser.open(address).await;
    log_in(&browser, "admin-token").await;
    Some(browser)
}

/// Types a token into the login page.
pub(super) async fn log_in(browser: &Browser, token: &str) {
    browser.fill("#token", token).await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for_script("the navigation", "return document.querySelector('#nav a') !== null").await;
}

pub(super) fn address(portico: &Portico, page: &str) -> String {
    format!("https://{}/console/#/{page}", portico.https())
}

pub(super) fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "shop"}}, "data": data})
}

async fn apply(client: &Http, manager: &str, object: &Value) {
    let path =
        format!("{CONFIG_MAPS}/{}?fieldManager={manager}", object["metadata"]["name"].as_str().unwrap());
    let answer =
        client.request(Method::PATCH, &path, "application/apply-patch+yaml", object.to_string()).await;
    assert!(answer.status.is_success(), "{}", answer.text());
}

/// Errors that the browser logged, except for the review without a token before the login.
pub(super) async fn complaints(browser: &Browser) -> Vec<String> {
    let all = browser.logged_errors().await;
    all.into_iter().filter(|one| !one.contains("selfsubjectreviews")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_logs_in_a_wrong_one_does_not_and_logging_out_forgets_it() {
    let portico = Portico::start().await;
    let Some(browser) = Browser::start().await else { return };
    browser.open(&address(&portico, "objects")).await;
    browser.wait_for_text("Bearer token").await;
    picture(&browser, "login").await;
    browser.fill("#token", "not-a-token").await;
    browser.click(".login button").await;
    browser.wait_for_text("The server does not know this token.").await;
    browser.run("document.getElementById('token').value = ''", json!([])).await;
    browser.fill("#token", "admin-token").await;
    browser.click(".login button").await;
    browser.wait_for_text("ConfigMap").await;
    assert_eq!(browser.run("return document.cookie + localStorage.length", json!([])).await, json!("0"));
    browser.click("#log-out").await;
    browser.wait_for_text("Bearer token").await;
    assert_eq!(browser.run("return sessionStorage.length", json!([])).await, json!(0));
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_follows_changes_of_objects() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let page = "objects/core/v1/configmaps?namespace=default&labels=app%3Dshop";
    let Some(browser) = at(&portico, page).await else { return };
    browser.wait_for_text("● Live").await;
    assert!(!browser.text().await.contains("by-watch"));
    admin.post(CONFIG_MAPS, &map("by-watch", json!({"a": "1"}))).await;
    admin.post(CONFIG_MAPS, &json!({"metadata": {"name": "other-labels"}})).await;
    browser.wait_for_text("by-watch").await;
    admin.merge(&format!("{CONFIG_MAPS}/by-watch"), &json!({"data": {"b": "2"}})).await;
    let cells = "return [...document.querySelectorAll('.grid-row')].map((row) => row.children[2].textContent).join() === '2'";
    browser.wait_for_script("the new number of entries", cells).await;
    assert!(!browser.text().await.contains("other-labels"));
    admin.delete(&format!("{CONFIG_MAPS}/by-watch")).await;
    browser.wait_for_script("no row", "return document.querySelectorAll('.grid-row').length === 0").await;
    assert_eq!(complaints(&browser).await, Vec::<String>::new());
    assert_eq!(
        browser.origins().await.into_iter().collect::<Vec<_>>(),
        [format!("https://{}", portico.https())]
    );
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_watch_starts_again_with_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, "admin-token,admin,1,system:masters\n").unwrap();
    portico_tests::install_provider();
    let program = TestServer::options().program(binary()).argument("--token-auth-file");
    let server = program.argument(tokens.to_str().unwrap()).start().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let named = |name: &str| serde_json::from_value::<ConfigMap>(map(name, json!({}))).unwrap();
    let list = format!("{}/console/#/objects/core/v1/configmaps?namespace=default", server.url());
    let Some(browser) = logged_in(&list).await else { return };
    browser.wait_for_text("● Live").await;
    maps.create(&PostParams::default(), &named("before")).await.unwrap();
    browser.wait_for_text("before").await;
    // The watch ends with 410: writes before the next watch are only in a list.
    let expired = server.fault(Fault::expire_watch().resource("", "configmaps").times(1)).await.unwrap();
    wait_until("the watch has expired", || async { expired.hits().await.unwrap() == 1 }).await;
    maps.create(&PostParams::default(), &named("after")).await.unwrap();
    maps.delete("before", &DeleteParams::default()).await.unwrap();
    browser.wait_for_text("after").await;
    browser
        .wait_for_script("the deleted row is gone", "return !document.body.innerText.includes('before')")
        .await;
    browser.wait_for_text("● Live").await;
    assert_eq!(complaints(&browser).await, Vec::<String>::new());
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_rows_scroll_without_freezing() {
    const ROWS: usize = 10_000;
    let portico = Portico::start().await;
    let admin = portico.admin();
    let writers = (0..8).map(|writer| {
        let client = admin.clone();
        async move {
            let mut connection = client.connect().await.unwrap();
            for n in (writer..ROWS).step_by(8) {
                let body = map(&format!("map-{n:05}"), json!({"n": n.to_string()})).to_string();
                let request = http::Request::post(CONFIG_MAPS).header("content-type", "application/json");
                let request = request.body(http_body_util::Full::new(body.into())).unwrap();
                let answer =
                    portico_tests::http::collect(connection.send(request).await.unwrap()).await.unwrap();
                assert_eq!(answer.status, 201, "{}", answer.text());
            }
        }
    });
    futures::future::join_all(writers).await;
    let Some(browser) = at(&portico, "objects/core/v1/configmaps?namespace=default").await else { return };
    browser
        .wait_for_script("all rows", "return document.getElementById('count').textContent === '10001'")
        .await;
    browser.wait_for_text("● Live").await;
    // Scrolls a hundred steps and records the longest time between two frames.
    let scroll = "window.longest = 0; let step = 0, last = performance.now();
        const body = document.querySelector('.grid-body');
        const frame = (now) => {
            window.longest = Math.max(window.longest, now - last); last = now;
            body.scrollTop = (body.scrollHeight - body.clientHeight) * (++step / 100);
            if (step < 100) requestAnimationFrame(frame); else window.scrolled = true;
        };
        requestAnimationFrame(frame);";
    browser.run(scroll, json!([])).await;
    browser.wait_for_script("the end of the list", "return window.scrolled === true").await;
    browser.wait_for_text("map-09999").await;
    let drawn = browser.run("return document.querySelectorAll('.grid-row').length", json!([])).await;
    assert!(drawn.as_u64().unwrap() < 100, "only rows in sight are drawn: {drawn}");
    let longest = browser.run("return window.longest", json!([])).await.as_f64().unwrap();
    report_measurement(&format!("console: scrolling 10,000 rows, the longest frame took {longest:.0} ms"));
    assert!(longest < LONGEST_FRAME, "{longest} ms");
    admin.post(CONFIG_MAPS, &map("zz-the-newest", json!({}))).await;
    browser.wait_for_text("zz-the-newest").await;
    browser.fill("input[type=search]", "map-04242").await;
    browser.wait_for_text("1 of 10002").await;
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_a_managed_field_is_explained_and_confirmed_once() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let note = "two lines:\n  - \"quoted\" # and more\n";
    apply(
        &admin,
        "deployer",
        &map("settings", json!({"color": "blue", "note": note, "number": "007", "yes": "true"})),
    )
    .await;
    let Some(browser) = at(&portico, "object/core/v1/configmaps/default/settings?tab=edit").await else {
        return;
    };
    browser
        .wait_for_script(
            "the editor",
            "return document.querySelector('.editor textarea')?.value.includes('blue')",
        )
        .await;
    let press = |label: &str| {
        format!(
            "[...document.querySelectorAll('#panel button')].find((one) => one.textContent === {}).click()",
            json!(label)
        )
    };
    // The printed YAML has the same meaning for the server.
    browser.wait_for_text("Fields of this object are managed by deployer").await;
    browser.run(&press("Dry run"), json!([])).await;
    browser.wait_for_text("No changes.").await;
    browser.wait_for_text("Dry run: nothing is saved yet").await;
    let edit = "const area = document.querySelector('.editor textarea');
        area.value = area.value.replace('blue', 'green'); area.dispatchEvent(new Event('input'));";
    browser.run(edit, json!([])).await;
    browser.click("#save").await;
    browser.wait_for_text("This field is managed by deployer").await;
    let page = browser.text().await;
    for text in [".data.color", "portico-console becomes the manager", "-   color: blue", "+   color: green"]
    {
        assert!(page.contains(text), "{text:?} is not in {page}");
    }
    picture(&browser, "edit").await;
    let stored = admin.get(&format!("{CONFIG_MAPS}/settings")).await.json();
    assert_eq!(stored["data"]["color"], "blue");
    browser.click("#force").await;
    browser.wait_for_text("Saved: revision").await;
    let stored = admin.get(&format!("{CONFIG_MAPS}/settings")).await.json();
    assert_eq!((&stored["data"]["color"], &stored["data"]["note"]), (&json!("green"), &json!(note)));
    let manager = stored["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["manager"] == "portico-console");
    assert_eq!(manager.unwrap()["operation"], "Apply");
    browser.click("#tab-fields").await;
    browser.wait_for_script("owners of the field", "return [...document.querySelectorAll('#panel tr')].some((row) => row.textContent === '.data.colorportico-console')").await;
    browser.click("#tab-yaml").await;
    browser.wait_for_text("color: green").await;
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_navigate_all_pages() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for name in ["aa", "bb", "cc"] {
        apply(&admin, "test", &map(name, json!({}))).await;
    }
    let Some(browser) = at(&portico, "objects/core/v1/configmaps?namespace=default&labels=app%3Dshop").await
    else {
        return;
    };
    browser.wait_for_text("● Live").await;
    browser.wait_for_text("cc").await;
    let is_active = |name: &str| {
        format!(
            "return document.querySelector('.grid-row[aria-selected=true]')?.children[1].textContent === '{name}'"
        )
    };
    browser.wait_for_script("the first row is active", &is_active("aa")).await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for_script("its page", "return document.querySelector('h1')?.textContent === 'aa'").await;
    browser.press(&[key::ESCAPE]).await;
    browser.wait_for_script("the first row again", &is_active("aa")).await;
    browser.press(&["j", "j", "k"]).await;
    browser.wait_for_script("the second row is active", &is_active("bb")).await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for_script("its page", "return document.querySelector('h1')?.textContent === 'bb'").await;
    browser.press(&[key::ESCAPE]).await;
    browser.wait_for_text("● Live").await;
    browser.press(&["f", "c", "c"]).await;
    browser.wait_for_text("1 of 3").await;
    browser.press(&[key::ESCAPE, "?"]).await;
    browser.wait_for_text("Previous row").await;
    browser.press(&[key::ESCAPE]).await;
    browser.wait_for_script("help is gone", "return document.querySelector('dialog') === null").await;
    for (letter, title) in [
        ("r", "APIs"),
        ("d", "Definitions"),
        ("a", "Access"),
        ("t", "Audit"),
        ("s", "Status"),
        ("o", "Objects"),
    ] {
        browser.press(&["g", letter]).await;
        browser
            .wait_for_script(
                title,
                &format!("return document.querySelector('h1')?.textContent === '{title}'"),
            )
            .await;
        let current = "return document.querySelector('#nav [aria-current=page]')?.textContent";
        assert_eq!(browser.run(current, json!([])).await, json!(title));
    }
    // Tab reaches every control, and every control has a name.
    let nameless = "return [...document.querySelectorAll('button, input, select, textarea, a')].filter((one) =>
        one.tabIndex < 0 || !(one.textContent.trim() || one.getAttribute('aria-label') || one.labels?.length)).map((one) => one.outerHTML)";
    assert_eq!(browser.run(nameless, json!([])).await, json!([]));
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dark_and_light_follow_the_system_until_one_is_chosen() {
    let portico = Portico::start().await;
    let Some(browser) = at(&portico, "objects").await else { return };
    let is = |dark: bool| {
        let compare = if dark { "<" } else { ">" };
        format!(
            "return Number(/\\d+/.exec(getComputedStyle(document.body).backgroundColor)[0]) {compare} 128"
        )
    };
    for (scheme, dark) in [("dark", true), ("light", false)] {
        browser.set_color_scheme(scheme).await;
        browser.wait_for_script(scheme, &is(dark)).await;
    }
    browser.click("#theme").await;
    browser.press(&["T"]).await;
    browser.wait_for_script("dark, as chosen", &is(true)).await;
    browser.run("location.reload()", json!([])).await;
    browser
        .wait_for_script(
            "the page again",
            "return document.readyState === 'complete' && document.querySelectorAll('#nav a').length > 3",
        )
        .await;
    browser.wait_for_script("dark, as chosen before", &is(true)).await;
    browser.quit().await;
}

/// Writes a picture of the window for the documentation, if `$PORTICO_SCREENSHOTS` names a folder.
pub(super) async fn picture(browser: &Browser, name: &str) {
    if let Some(folder) = std::env::var_os("PORTICO_SCREENSHOTS") {
        // Without the focus frame of keyboard users.
        browser.run("delete document.documentElement.dataset.keys", json!([])).await;
        let file = std::path::Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(file, browser.screenshot().await).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_objects_are_written_back_unchanged() {
    let portico = Portico::start().await;
    let seconds = 9_007_199_254_740_993_i64;
    let template = json!({"apiVersion": "v1", "kind": "PodTemplate",
        "metadata": {"name": "exact", "annotations": {"odd": "a\u{85}b", "note": "old"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"terminationGracePeriodSeconds": seconds, "containers": [{"name": "c", "image": "i"}]}}});
    let (admin, path) = (portico.admin(), "/api/v1/namespaces/default/podtemplates");
    assert_eq!(admin.post(path, &template).await.status, 201);
    let Some(browser) = at(&portico, "object/core/v1/podtemplates/default/exact?tab=yaml").await else {
        return;
    };
    browser.wait_for_text(&format!("terminationGracePeriodSeconds: {seconds}")).await;
    browser.wait_for_text(r#"odd: "a\x85b""#).await;
    browser.click("#tab-edit").await;
    browser
        .wait_for_script(
            "the editor",
            "return document.querySelector('.editor textarea')?.value.includes('old')",
        )
        .await;
    // Only the note has another manager: no other field counts as changed.
    let edit = "const area = document.querySelector('.editor textarea');
        area.value = area.value.replace('note: old', 'note: new'); area.dispatchEvent(new Event('input'));
        document.getElementById('save').click()";
    browser.run(edit, json!([])).await;
    browser.wait_for_text("This field is managed by").await;
    let page = browser.text().await;
    assert!(page.contains(".metadata.annotations.note") && !page.contains("Seconds\n"), "{page}");
    browser.click("#force").await;
    browser.wait_for_text("Saved: revision").await;
    let stored = admin.get(&format!("{path}/exact")).await.json();
    assert_eq!(stored["template"]["spec"]["terminationGracePeriodSeconds"], seconds);
    assert_eq!(stored["metadata"]["annotations"], json!({"odd": "a\u{85}b", "note": "new"}));
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_objects_are_never_markup() {
    let portico = Portico::start().await;
    let attack = "<img src=x onerror=\"window.attacked=1\"><script>window.attacked=1</script>";
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "attack", "annotations": {"a": attack}}, "data": {"b": attack}});
    assert_eq!(portico.admin().post(CONFIG_MAPS, &object).await.status, 201);
    let Some(browser) = at(&portico, "object/core/v1/configmaps/default/attack").await else { return };
    browser.wait_for_text("<script>window.attacked=1</script>").await;
    let found = "return window.attacked === undefined && document.querySelectorAll('main img, main script').length === 0";
    assert_eq!(browser.run(found, json!([])).await, json!(true));
    // The browser refuses text as markup, so that a mistake does no harm.
    let refused = "try { document.body.innerHTML = '<b>x</b>'; return false; } catch (error) { return error instanceof TypeError; }";
    assert_eq!(browser.run(refused, json!([])).await, json!(true));
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ejection_and_return_of_an_address_are_shown() {
    let portico = Portico::start().await;
    let (admin, backend) = (portico.admin(), Backend::start("ejected.example.com").await);
    assert_eq!(admin.post(API_SERVICES, &super::data::ejecting(&backend)).await.status, 201);
    let path = backend.path("/namespaces/default/flunders");
    wait_until("the backend answers", || async { admin.get(&path).await.status == 200 }).await;
    let Some(browser) = at(&portico, &format!("api/{}", backend.name())).await else { return };
    browser.wait_for_text("As seen by this facade").await;
    backend.set_behavior(Behavior::Code(503));
    for _ in 0..2 {
        admin.get(&path).await;
    }
    browser.wait_for_text("✗ ejected after").await;
    backend.set_behavior(Behavior::Normal);
    wait_until("it answers again", || async { admin.get(&path).await.status == 200 }).await;
    browser.wait_for_text("✓ returned").await;
    // Texts that mark the expiry of certificates.
    let marks = "const file = document.querySelector('link[href*=\"/certs.js\"]').href;
        return import(file).then(({ end }) => [-1, 1, 100.5].map((days) => end(new Date(Date.now() + days * 86400000)).textContent.slice(0, 7)).join())";
    assert_eq!(browser.run(marks, json!([])).await, json!("✗ expir,✗ soon:,✓ 100d"));
    assert_eq!(complaints(&browser).await, Vec::<String>::new());
    browser.quit().await;
}

/// Limit for the fastest of five first paints with an empty cache, in milliseconds: ten times the budget, for
/// debug builds on busy machines.
const MAX_FIRST_PAINT: f64 = 3_000.0;

#[tokio::test(flavor = "multi_thread")]
async fn the_first_paint_is_fast() {
    let portico = Portico::start().await;
    let Some(browser) = Browser::start().await else { return };
    browser.open(&address(&portico, "")).await;
    browser.wait_for_text("Bearer token").await;
    let mut paints = Vec::new();
    for _ in 0..5 {
        browser.open("about:blank").await;
        browser.clear_cache().await;
        browser.open(&address(&portico, "")).await;
        let script = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
        paints.push(browser.wait_for_script("a paint", script).await.as_f64().unwrap());
    }
    let sizes = "return performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js')).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)";
    let script = browser.run(sizes, json!([])).await.as_f64().unwrap() / 1024.0;
    paints.sort_by(f64::total_cmp);
    report_measurement(&format!(
        "console: first contentful paint with nothing kept, median of five {:.0} ms, {paints:.0?}; {script:.1} KiB of script",
        paints[2]
    ));
    assert!(paints[0] < MAX_FIRST_PAINT && script > 1.0, "{paints:?}, {script}");
    browser.quit().await;
}
