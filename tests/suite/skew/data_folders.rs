//! A data folder with its SQLite database, opened by the builds one after the other.

use std::path::Path;
use std::process::Stdio;

use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Launch, Portico};
use serde_json::json;

use super::Builds;
use super::quiet::assert_quiet;
use super::used::{Watch, config_map, created, end, made, make};

/// Secrets are encrypted in it.
fn encrypted(program: &Path) -> Launch {
    let (launch, folder) = Launch::new().by(program).prepared();
    let configuration = json!({"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": [{"resources": ["secrets"], "providers": [
            {"aesgcm": {"keys": [{"name": "k", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}},
            {"identity": {}}]}]});
    let file = folder.join("encryption.json");
    std::fs::write(&file, configuration.to_string()).unwrap();
    launch.args(&["--encryption-provider-config", file.to_str().unwrap()])
}

/// Everything is there, at the versions and behind the certificates that clients know.
async fn a_newer_one_goes_on(
    mut portico: Portico,
    builds: Builds,
    ends: impl AsyncFn(&mut Portico),
) -> Portico {
    let admin = portico.admin();
    make(&admin).await;
    let (before, ca) = (made(&admin).await, portico.ca().to_vec());
    let list = admin.get(CONFIG_MAPS).await.json();
    created(&admin, CONFIG_MAPS, &config_map("last")).await;
    ends(&mut portico).await;
    portico.restart_by(builds.newer).await;
    let admin = portico.admin();
    assert_eq!(portico.ca(), ca);
    let mut found = made(&admin).await;
    assert!(found.remove(&format!("{CONFIG_MAPS}/last")).is_some());
    assert_eq!(found, before);
    // A watch goes on from before.
    let mut watch = Watch::behind(CONFIG_MAPS, list["metadata"]["resourceVersion"].as_str().unwrap());
    watch.wait_for(&admin, "last").await;
    portico
}

/// An older build opens what a newer one has served, with everything in it, or says why not and changes nothing.
async fn an_older_one_opens_or_refuses(mut portico: Portico, builds: Builds) {
    let before = made(&portico.admin()).await;
    assert!(portico.stop().await.success());
    let length = portico.log().len();
    let mut older = portico.again_by(builds.older).spawn();
    if older.ready_unless_it_ends().await {
        assert_eq!(made(&older.admin()).await, before);
        assert!(older.stop().await.success());
    } else {
        let printed = portico.log().split_off(length);
        assert!(
            printed.contains("has schema version ") && printed.contains(": use a newer portico"),
            "{printed}"
        );
    }
    portico.restart_by(builds.newer).await;
    assert_eq!(made(&portico.admin()).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_build_goes_on_with_the_data_folder_of_an_older_one_and_not_the_reverse_unnoticed() {
    let Some(builds) = Builds::find() else { return };
    let older = encrypted(builds.older).start().await;
    let stops = async |portico: &mut Portico| assert!(portico.stop().await.success());
    let newer = a_newer_one_goes_on(older, builds, stops).await;
    let admin = newer.admin();
    end(&admin, &admin).await;
    assert_quiet(&[&newer]).await;
    an_older_one_opens_or_refuses(newer, builds).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_build_goes_on_where_an_older_one_was_killed() {
    let Some(builds) = Builds::find() else { return };
    let older = encrypted(builds.older).start().await;
    a_newer_one_goes_on(older, builds, async |portico: &mut Portico| portico.kill()).await;
}

/// Runs a verb to its end: whether it was done, and everything that it says.
async fn run(program: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = tokio::process::Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output().await.unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.success(), printed)
}

async fn done(program: &Path, arguments: &[&str]) {
    let (is_done, printed) = run(program, arguments).await;
    assert!(is_done, "{} {arguments:?}: {printed}", program.display());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verbs_of_a_newer_build_are_done_by_an_older_control_service_or_refused_with_the_reason() {
    let Some(builds) = Builds::find() else { return };
    let older = encrypted(builds.older).start().await;
    make(&older.admin()).await;
    let file = |name: &str| older.folder().join(name).display().to_string();
    let (backup, moved) = (file("backup"), format!("sqlite://{}", file("moved")));
    let (data, kubeconfig) = (older.data().display().to_string(), older.data().join("admin.kubeconfig"));
    let (from, kubeconfig) = (format!("sqlite://{data}"), kubeconfig.display().to_string());
    let direct = file("direct");
    for arguments in [
        vec!["secrets", "rewrap", "--kubeconfig", &kubeconfig],
        vec!["backup", "--to", &backup, "--kubeconfig", &kubeconfig],
        vec!["backup", "--to", &direct, "--data-dir", &data],
        vec!["doctor", &data],
        vec!["migrate", "--from", &from, "--to", &moved],
    ] {
        let (is_done, printed) = run(builds.newer, &arguments).await;
        assert!(
            is_done || printed.contains("is of an earlier release than this portico"),
            "{arguments:?}: {printed}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_of_each_build_are_restored_by_the_other() {
    let Some(builds) = Builds::with("backup", "--to") else { return };
    for (from, to) in [(builds.older, builds.newer), (builds.newer, builds.older)] {
        let portico = encrypted(from).start().await;
        make(&portico.admin()).await;
        let expected = made(&portico.admin()).await;
        let file = portico.folder().join("backup").display().to_string();
        done(from, &["backup", "--to", &file, "--data-dir", portico.data().to_str().unwrap()]).await;
        let (launch, folder) = encrypted(to).prepared();
        let data = folder.join("data").display().to_string();
        done(to, &["restore", "--from", &file, "--data-dir", &data]).await;
        let restored = launch.start().await;
        assert_eq!(made(&restored.admin()).await, expected);
    }
}
