//! A data folder with its SQLite database, opened by the builds one after the other.

use std::path::Path;
use std::process::Stdio;

use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Launch, Portico};
use serde_json::json;

use super::Builds;
use super::api_use::{Watch, check_deletions, config_map, created, created_objects, make};
use super::log_check::assert_quiet;

/// Returns a launch with encrypted Secrets.
fn encrypted(program: &Path) -> Launch {
    let (launch, folder) = Launch::new().program_path(program).prepare_folder();
    let configuration = json!({"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": [{"resources": ["secrets"], "providers": [
            {"aesgcm": {"keys": [{"name": "k", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}},
            {"identity": {}}]}]});
    let file = folder.join("encryption.json");
    std::fs::write(&file, configuration.to_string()).unwrap();
    launch.args(&["--encryption-provider-config", file.to_str().unwrap()])
}

/// Checks that a newer build serves all objects with unchanged versions, and with certificates that clients trust.
async fn check_newer(mut portico: Portico, builds: Builds, ends: impl AsyncFn(&mut Portico)) -> Portico {
    let admin = portico.admin();
    make(&admin).await;
    let (before, ca) = (created_objects(&admin).await, portico.ca().to_vec());
    let list = admin.get(CONFIG_MAPS).await.json();
    created(&admin, CONFIG_MAPS, &config_map("last")).await;
    ends(&mut portico).await;
    portico.restart_with(builds.newer).await;
    let admin = portico.admin();
    assert_eq!(portico.ca(), ca);
    let mut found = created_objects(&admin).await;
    assert!(found.remove(&format!("{CONFIG_MAPS}/last")).is_some());
    assert_eq!(found, before);
    // A watch resumes from before the change.
    let mut watch = Watch::from_version(CONFIG_MAPS, list["metadata"]["resourceVersion"].as_str().unwrap());
    watch.wait_for(&admin, "last").await;
    portico
}

/// Checks that an older build opens the folder of a newer one with all objects, or reports the reason and changes nothing.
async fn check_older(mut portico: Portico, builds: Builds) {
    let before = created_objects(&portico.admin()).await;
    assert!(portico.stop().await.success());
    let length = portico.log().len();
    let mut older = portico.relaunch_with(builds.older).spawn();
    if older.wait_ready_or_exit().await {
        assert_eq!(created_objects(&older.admin()).await, before);
        assert!(older.stop().await.success());
    } else {
        let printed = portico.log().split_off(length);
        assert!(
            printed.contains("has schema version ") && printed.contains(": use a newer portico"),
            "{printed}"
        );
    }
    portico.restart_with(builds.newer).await;
    assert_eq!(created_objects(&portico.admin()).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_build_opens_the_data_folder_of_an_older_one() {
    let Some(builds) = Builds::find() else { return };
    let older = encrypted(builds.older).start().await;
    let stops = async |portico: &mut Portico| assert!(portico.stop().await.success());
    let newer = check_newer(older, builds, stops).await;
    let admin = newer.admin();
    check_deletions(&admin, &admin).await;
    assert_quiet(&[&newer]).await;
    check_older(newer, builds).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_build_opens_the_folder_of_a_killed_older_one() {
    let Some(builds) = Builds::find() else { return };
    let older = encrypted(builds.older).start().await;
    check_newer(older, builds, async |portico: &mut Portico| portico.kill()).await;
}

/// Runs a verb; returns true if it succeeded, and the output.
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
async fn newer_verbs_work_or_are_refused_with_a_reason() {
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
        let expected = created_objects(&portico.admin()).await;
        let file = portico.folder().join("backup").display().to_string();
        done(from, &["backup", "--to", &file, "--data-dir", portico.data().to_str().unwrap()]).await;
        let (launch, folder) = encrypted(to).prepare_folder();
        let data = folder.join("data").display().to_string();
        done(to, &["restore", "--from", &file, "--data-dir", &data]).await;
        let restored = launch.start().await;
        assert_eq!(created_objects(&restored.admin()).await, expected);
    }
}
