//! The page of an object: its summary, its YAML, and values of Secrets.

use portico_tests::Portico;
use portico_tests::objects::CONFIG_MAPS;
use serde_json::json;

use super::browsing::{address, at, complaints, map, picture};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// `hunter2` in base64.
const ENCODED: &str = "aHVudGVyMg==";

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_shows_conditions_labels_status_owners_and_dependents() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let owner = admin.post(CONFIG_MAPS, &map("owner", json!({"color": "blue"}))).await.json();
    let uid = &owner["metadata"]["uid"];
    let mut child = map("child", json!({}));
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
    assert_eq!(admin.post(CONFIG_MAPS, &child).await.status, 201);
    let event = json!({"metadata": {"name": "owner.1"}, "reason": "Painted", "message": "It is blue now.", "type": "Warning",
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "owner", "uid": uid}});
    assert_eq!(admin.post("/api/v1/namespaces/default/events", &event).await.status, 201);
    let Some(browser) = at(&portico, "object/core/v1/configmaps/default/owner").await else { return };
    for text in ["app=shop", "color", "blue", "No owners.", "ConfigMap/child", "Painted", "It is blue now."] {
        browser.wait_for_text(text).await;
    }
    // Changes appear without a reload.
    admin.merge(&format!("{CONFIG_MAPS}/owner"), &json!({"data": {"color": "green"}})).await;
    browser
        .wait_for_script(
            "the new value",
            "return document.getElementById('data').innerText.includes('green')",
        )
        .await;
    browser.click(".tree a").await;
    browser.wait_for_text("ConfigMap/owner").await;
    // A label links to all objects with this label.
    browser.click(".chip").await;
    browser
        .wait_for_script("both objects", "return document.querySelectorAll('.grid-row').length === 2")
        .await;
    let service = "object/apiregistration.k8s.io/v1/apiservices/-/v1.apps";
    browser.open(&address(&portico, service)).await;
    browser.wait_for_text("✓ True").await;
    browser.wait_for_text("Local APIServices are always available").await;
    browser.open(&address(&portico, "object/core/v1/namespaces/-/default")).await;
    browser.wait_for_text("phase: Active").await;
    assert_eq!(complaints(&browser).await, Vec::<String>::new());
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn yaml_is_highlighted_wrapped_copied_and_downloaded() {
    let portico = Portico::start().await;
    let data = json!({"long": "word ".repeat(100).trim_end(), "number": "1", "text": "a: b\n- c\n"});
    portico.admin().post(CONFIG_MAPS, &map("settings", data)).await;
    let Some(browser) = at(&portico, "object/core/v1/configmaps/default/settings?tab=yaml").await else {
        return;
    };
    browser.wait_for_text("kind: ConfigMap").await;
    let spans = |class: &str| {
        format!(
            "return [...document.querySelectorAll('#panel .{class}')].map((one) => one.textContent.trim())"
        )
    };
    let keys = browser.run(&spans("key-name"), json!([])).await;
    assert_eq!(keys[0], "apiVersion");
    // Lines of a block scalar are strings, even if they look like YAML.
    assert!(!keys.as_array().unwrap().contains(&json!("a")), "{keys}");
    let strings = browser.run(&spans("string"), json!([])).await;
    assert!(strings.as_array().unwrap().contains(&json!("a: b")), "{strings}");
    let is_wide =
        "const pre = document.querySelector('#panel pre'); return pre.scrollWidth > pre.clientWidth";
    assert_eq!(browser.run(is_wide, json!([])).await, json!(true));
    browser.click("#wrap").await;
    assert_eq!(browser.run(is_wide, json!([])).await, json!(false));
    browser.run("location.reload()", json!([])).await;
    browser
        .wait_for_script("lines wrap again", "return document.querySelector('#panel pre.wrap') !== null")
        .await;
    let intercept =
        "window.copied = ''; navigator.clipboard.writeText = async (text) => { window.copied = text; };
        HTMLAnchorElement.prototype.click = function () { window.downloaded = this.download; };";
    browser.run(intercept, json!([])).await;
    browser.click("#copy-YAML").await;
    browser.wait_for_text("Copied").await;
    browser.click("#download").await;
    let results = browser.run("return [window.copied.split('\\n')[0], window.downloaded]", json!([])).await;
    assert_eq!(results, json!(["apiVersion: v1", "configmaps-settings.yaml"]));
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_a_secret_are_hidden_until_they_are_revealed() {
    let portico = Portico::start().await;
    let secret = json!({"metadata": {"name": "database"}, "stringData": {"password": "hunter2"}});
    assert_eq!(portico.admin().post(SECRETS, &secret).await.status, 201);
    let Some(browser) = at(&portico, "object/core/v1/secrets/default/database").await else { return };
    let contains =
        |text: &str| format!("return document.documentElement.outerHTML.includes({})", json!(text));
    browser.wait_for_text("7 bytes").await;
    browser.wait_for_text("Opaque").await;
    let intercept = "navigator.clipboard.writeText = async (text) => { window.copied = text; };";
    browser.run(intercept, json!([])).await;
    browser.click("#copy-password").await;
    browser.wait_for_text("Copied password.").await;
    assert_eq!(browser.run("return window.copied", json!([])).await, json!("hunter2"));
    assert_eq!(browser.run(&contains("hunter2"), json!([])).await, json!(false));
    picture(&browser, "secret").await;
    browser.click("#reveal-password").await;
    browser.wait_for_text("hunter2").await;
    browser.click("#reveal-password").await;
    assert_eq!(browser.run(&contains("hunter2"), json!([])).await, json!(false));
    browser.click("#tab-yaml").await;
    browser.wait_for_text("password: hidden").await;
    browser.click("#tab-history").await;
    browser.wait_for_text("password: hidden").await;
    browser.click("#tab-edit").await;
    browser.wait_for_text("Show values and edit").await;
    assert_eq!(browser.run(&contains(ENCODED), json!([])).await, json!(false));
    browser.click("#show-editor").await;
    let edited = format!("return document.querySelector('.editor textarea')?.value.includes('{ENCODED}')");
    browser.wait_for_script("the value", &edited).await;
    browser.click("#tab-yaml").await;
    browser.wait_for_text(ENCODED).await;
    browser.click("#show-values").await;
    browser.wait_for_text("password: hidden").await;
    browser.quit().await;
}
