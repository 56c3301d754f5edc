//! Actions on objects: create, scale, suspend, delete.

use portico_tests::browser::key;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Portico, wait_until};
use serde_json::{Value, json};

use super::browsing::{address, at, complaints, map, picture};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "shop"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}})
}

fn deployment() -> Value {
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Always");
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "shop"}}, "template": template}})
}

#[tokio::test(flavor = "multi_thread")]
async fn scaling_asks_for_the_replicas_and_writes_them() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    assert_eq!(admin.post(DEPLOYMENTS, &deployment()).await.status, 201);
    let Some(browser) = at(&portico, "object/apps/v1/deployments/default/shop").await else { return };
    browser.click("#scale").await;
    browser
        .wait_for_script("the present number", "return document.getElementById('replicas')?.value === '2'")
        .await;
    picture(&browser, "scale").await;
    browser.press(&["5", key::ENTER]).await;
    browser.wait_for_script("the dialog is gone", "return document.querySelector('dialog') === null").await;
    for text in ["Scaled from 2 to 5.", "0 of 5 ready"] {
        browser.wait_for_text(text).await;
    }
    let stored = admin.get(&format!("{DEPLOYMENTS}/shop")).await.json();
    assert_eq!(stored["spec"]["replicas"], 5);
    browser.open(&address(&portico, "object/core/v1/namespaces/-/default")).await;
    browser.wait_for_text("● Live").await;
    assert_eq!(browser.run("return document.getElementById('scale')", json!([])).await, Value::Null);
    assert_eq!(complaints(&browser).await, Vec::<String>::new());
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cron_job_is_suspended_and_resumed() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    let job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template()}}}});
    assert_eq!(admin.post(CRON_JOBS, &job).await.status, 201);
    let Some(browser) = at(&portico, "object/batch/v1/cronjobs/default/nightly").await else { return };
    for (label, next, is_suspended) in [("Suspend", "Resume", true), ("Resume", "Suspend", false)] {
        let shows =
            |label: &str| format!("return document.getElementById('suspend')?.textContent === '{label}'");
        browser.wait_for_script(label, &shows(label)).await;
        browser.click("#suspend").await;
        browser.wait_for_script(next, &shows(next)).await;
        let stored = admin.get(&format!("{CRON_JOBS}/nightly")).await.json();
        assert_eq!(stored["spec"]["suspend"], is_suspended);
    }
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_rows_are_deleted_after_a_confirmation() {
    let portico = Portico::start().await;
    let admin = portico.admin();
    for name in ["aa", "bb", "cc"] {
        assert_eq!(admin.post(CONFIG_MAPS, &map(name, json!({}))).await.status, 201);
    }
    let page = "objects/core/v1/configmaps?namespace=default&labels=app%3Dshop";
    let Some(browser) = at(&portico, page).await else { return };
    browser.wait_for_script("three rows", "return document.querySelectorAll('.grid-row').length === 3").await;
    // Selection by key, and by click, which does not open the object.
    browser.press(&["x"]).await;
    browser.wait_for_text("Delete 1 …").await;
    browser.click("[aria-label='Choose cc']").await;
    browser.wait_for_text("Delete 2 …").await;
    browser.click("#delete-chosen").await;
    browser.wait_for_text("Delete 2 objects (configmaps)?").await;
    picture(&browser, "delete").await;
    browser.press(&[key::ESCAPE]).await;
    browser.wait_for_script("no dialog", "return document.querySelector('dialog') === null").await;
    assert_eq!(admin.get(&format!("{CONFIG_MAPS}/aa")).await.status, 200);
    browser.click("#delete-chosen").await;
    browser.click("#confirm").await;
    browser.wait_for_text("2 configmaps deleted.").await;
    browser.wait_for_script("one row", "return document.querySelectorAll('.grid-row').length === 1").await;
    for (name, code) in [("aa", 404), ("bb", 200), ("cc", 404)] {
        assert_eq!(admin.get(&format!("{CONFIG_MAPS}/{name}")).await.status, code, "{name}");
    }
    browser.click(".grid-head [type=checkbox]").await;
    browser.wait_for_text("Delete 1 …").await;
    browser.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_object_is_tried_and_created_and_its_dialog_closes_on_another_page() {
    let portico = Portico::start().await;
    let Some(browser) = at(&portico, "objects/core/v1/configmaps?namespace=default").await else { return };
    browser.click("#new").await;
    browser.wait_for_text("New ConfigMap").await;
    browser.run("location.hash = '#/access'", json!([])).await;
    browser.wait_for_text("Who can?").await;
    assert_eq!(browser.run("return document.querySelector('dialog')", json!([])).await, Value::Null);
    browser.open(&address(&portico, "objects/core/v1/configmaps")).await;
    browser.click("#new").await;
    browser.fill("#new-name", "made-here").await;
    picture(&browser, "new").await;
    browser.click("#create").await;
    browser
        .wait_for_script("its page", "return document.querySelector('h1')?.textContent === 'made-here'")
        .await;
    let path = format!("{CONFIG_MAPS}/made-here");
    wait_until("the object exists", || async { portico.admin().get(&path).await.status == 200 }).await;
    // An existing object is not overwritten.
    browser.open(&address(&portico, "objects/core/v1/configmaps")).await;
    browser.click("#new").await;
    browser.fill("#new-name", "made-here").await;
    browser.click("#create").await;
    browser.wait_for_text("already exists").await;
    browser.quit().await;
}
