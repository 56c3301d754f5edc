//! Every page of the console: its content, narrow windows, and pictures for the documentation.

use http::Method;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Browser, Launch, Portico};
use serde_json::{Value, json};

use super::browsing::{address, at, complaints, map, picture};

/// A page, texts on it, and the name of its picture.
type Page = (&'static str, &'static [&'static str], &'static str);

const PAGES: &[Page] = &[
    ("objects", &["Workloads", "Configuration", "ConfigMap", "example.com", "Thing", "Other"], "objects"),
    ("objects/core/v1/configmaps?namespace=default", &["settings", "● Live"], "list"),
    (
        "object/core/v1/configmaps/default/settings",
        &["app=shop", "blue", "No owners.", "No dependents."],
        "object",
    ),
    ("object/core/v1/configmaps/default/settings?tab=yaml", &["Wrap lines", "color: blue"], "yaml"),
    ("object/core/v1/configmaps/default/settings?tab=fields", &[".data.color"], "fields"),
    ("object/core/v1/namespaces/-/default", &["Owners", "Events", "Search"], ""),
    ("object/core/v1/namespaces/-/default?tab=history", &["All of revision", "created"], ""),
    ("past/core/v1/configmaps?at=0s&namespace=default", &["ConfigMap as of", "(revision ", "settings"], ""),
    ("apis", &["v1.nowhere.example.com", "default/missing:443", "this server"], "apis"),
    ("api/v1.nowhere.example.com", &["Fails at resolved", "default/missing:443", "not verified"], "api"),
    ("definitions", &["things.example.com", "Established", "ConfigMap"], "definitions"),
    (
        "definition/things.example.com",
        &["NamesAccepted", "Storage version", "size", "required"],
        "definition",
    ),
    ("schema/apps/v1/Deployment", &["Deployment", "spec", "status"], "schema"),
    (
        "access?verb=delete&resource=secrets",
        &["system:masters", "cluster-admin", "allowed", "selfsubjectaccessreviews"],
        "access",
    ),
    ("access?verb=get&resource=secrets&user=alice", &["alice", "not allowed"], ""),
    (
        "audit?filter=apiservices",
        &["/apis/apiregistration.k8s.io/v1/apiservices", "ResponseComplete"],
        "audit",
    ),
    (
        "status",
        &["Ready", "in-process", "Requests per second", "serving gRPC", "up to date", "Memory of"],
        "status",
    ),
];

/// Starts a server that records audit events, with an API that fails, a custom resource and a ConfigMap.
async fn prepared() -> Portico {
    let (launch, folder) = Launch::new().prepare_folder();
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
    std::fs::write(folder.join("policy.yaml"), policy).unwrap();
    let audit = ["--audit-policy-file", "policy.yaml", "--audit-log-path", "audit.log"];
    let portico = launch.args(&audit).start().await;
    let admin = portico.admin();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let created =
        admin.request(Method::POST, definitions, "application/yaml", include_str!("thing.yaml")).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let spec = json!({"group": "nowhere.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
        "service": {"namespace": "default", "name": "missing"}, "insecureSkipTLSVerify": true});
    let service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.nowhere.example.com"}, "spec": spec});
    assert_eq!(admin.post("/apis/apiregistration.k8s.io/v1/apiservices", &service).await.status, 201);
    let data = json!({"color": "blue", "shop.conf": "currency=EUR\nlanguage=en\n"});
    assert_eq!(admin.post(CONFIG_MAPS, &map("settings", data)).await.status, 201);
    portico
}

async fn open(browser: &Browser, portico: &Portico, (page, texts, _): &Page) {
    browser.open(&address(portico, page)).await;
    for text in *texts {
        browser.wait_for_text(text).await;
    }
    let counted =
        "return ![...document.querySelectorAll('#kinds li')].some((one) => one.textContent.endsWith('…'))";
    browser.wait_for_script("all counts", counted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_shows_its_content_without_an_error() {
    let portico = prepared().await;
    let Some(browser) = at(&portico, "status").await else { return };
    for page in PAGES {
        open(&browser, &portico, page).await;
        if !page.2.is_empty() {
            picture(&browser, page.2).await;
        }
    }
    browser.open(&address(&portico, "definition/things.example.com")).await;
    let loaded = "return document.querySelector('textarea')?.value.includes('things')";
    browser.wait_for_script("the definition", loaded).await;
    let edit = "const area = document.querySelector('textarea');
        area.value = area.value.replace('type: integer', 'type: string'); area.dispatchEvent(new Event('input'));";
    browser.run(edit, json!([])).await;
    browser.click("#check").await;
    browser.wait_for_text("Breaks clients").await;
    assert_eq!(complaints(&browser).await, Vec::<String>::new());
    let origins: Vec<_> = browser.origins().await.into_iter().collect();
    assert_eq!(origins, [format!("https://{}", portico.https())]);
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_fits_a_window_of_420_pixels() {
    let portico = prepared().await;
    let Some(browser) = at(&portico, "objects").await else { return };
    browser.resize(420, 860).await;
    // Only YAML and plots scroll sideways, within their frames.
    let wide = "const main = document.querySelector('main');
        return main.scrollWidth > main.clientWidth || document.documentElement.scrollWidth > innerWidth ? 'the page' :
            [...main.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && one.checkVisibility()
                && !one.closest('pre, svg, .tabs')).map((one) => one.outerHTML.slice(0, 200)).join('\\n')";
    for page in PAGES.iter().filter(|page| page.0 != "status") {
        // Narrow windows omit some columns; the first text is always visible.
        open(&browser, &portico, &(page.0, &page.1[..1], "")).await;
        assert_eq!(browser.run(wide, json!([])).await, json!(""), "{}", page.0);
    }
    browser.open(&address(&portico, "status")).await;
    browser.wait_for_text("Memory of").await;
    assert_eq!(browser.run(wide, json!([])).await, json!(""), "status");
    let in_sight =
        "const { left, right } = document.querySelector('#nav [aria-current]').getBoundingClientRect();
        return left >= 0 && right <= innerWidth && document.querySelector('.who .name').checkVisibility()";
    assert_eq!(browser.run(in_sight, json!([])).await, json!(true), "the active tab and the user");
    browser.open(&address(&portico, "objects/core/v1/configmaps?namespace=default")).await;
    browser.wait_for_text("settings").await;
    picture(&browser, "narrow").await;
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_apis_are_complete_and_a_click_leaves_no_frame() {
    let portico = prepared().await;
    let Some(browser) = at(&portico, "apis").await else { return };
    browser.wait_for_text("v1.flowcontrol.apiserver.k8s.io").await;
    let cut = "return [...document.querySelectorAll('.grid-row .strong')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)";
    assert_eq!(browser.run(cut, json!([])).await, json!([]));
    let frame = "return getComputedStyle(document.activeElement).outlineStyle";
    browser.click("#nav a[href='#/definitions']").await;
    browser.wait_for_text("things.example.com").await;
    assert_eq!(browser.run(frame, json!([])).await, json!("none"));
    browser.press(&["j"]).await;
    assert_ne!(browser.run(frame, json!([])).await, json!("none"));
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_leaves_out_requests_of_browsers_until_they_are_wanted() {
    let portico = prepared().await;
    let Some(browser) = at(&portico, "objects").await else { return };
    browser
        .wait_for_script(
            "counts",
            "return document.querySelector('[data-kind=configmaps]')?.textContent.match(/\\d/) !== null",
        )
        .await;
    browser.open(&address(&portico, "audit")).await;
    browser.wait_for_text("/apis/apiregistration.k8s.io/v1/apiservices").await;
    assert!(!browser.text().await.contains("selfsubjectaccessreviews"));
    // Without the filter, newer requests would push these off the page.
    browser.open(&address(&portico, "audit?filter=selfsubjectaccessreviews")).await;
    browser
        .wait_for_script("no matching row", "return document.getElementById('count')?.textContent === '0'")
        .await;
    browser.click("#browsers").await;
    browser.wait_for_text("selfsubjectaccessreviews").await;
    browser.click("#browsers").await;
    let hidden = "return !document.body.innerText.includes('selfsubjectaccessreviews')";
    browser.wait_for_script("no request of the console", hidden).await;
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_audit_names_the_flags_that_start_it() {
    let portico = Portico::start().await;
    let Some(browser) = at(&portico, "audit").await else { return };
    browser.wait_for_text("Audit is off. Start the server with --audit-policy-file").await;
    assert_eq!(browser.run("return document.querySelector('.failure')", json!([])).await, Value::Null);
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn access_answers_frequent_questions_by_one_click() {
    let portico = prepared().await;
    let Some(browser) = at(&portico, "access").await else { return };
    browser.wait_for_text("delete Secrets").await;
    let verb = browser.run("return document.getElementById('verb').value", json!([])).await;
    assert_eq!(verb, json!("get"));
    browser.click(".chip").await;
    browser.wait_for_text("cluster-admin").await;
    let inputs_script = "return ['verb', 'what'].map((id) => document.getElementById(id).value)";
    assert_eq!(browser.run(inputs_script, json!([])).await, json!(["delete", "secrets"]));
    let missing: Value = browser.run("return document.querySelectorAll('.failure').length", json!([])).await;
    assert_eq!(missing, json!(0));
    browser.quit().await;
}
