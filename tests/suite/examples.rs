//! The files in `examples`, checked against the program.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use portico_tests::binary::repository;
use portico_tests::tools::output;
use portico_tests::{Launch, Portico};
use serde_json::{Map, Value};

fn example(name: &str) -> PathBuf {
    repository().join("examples").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(example(name)).unwrap()
}

fn yaml(name: &str) -> Value {
    serde_saphyr::from_str(&read(name)).unwrap()
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Runs the program to its end and returns its output.
fn portico(arguments: &[impl AsRef<str>]) -> String {
    let mut command = Command::new(portico_tests::binary());
    command.args(arguments.iter().map(AsRef::as_ref)).env_clear();
    let output = output(command.env("PATH", std::env::var_os("PATH").unwrap_or_default()));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Panics unless the program accepts these arguments. They are parsed before the help is printed.
fn assert_accepted(arguments: &[String]) {
    let help = ["-h".to_owned()];
    portico(&[arguments, &help].concat());
}

/// Values of all flags of a running server.
async fn flags(portico: &Portico) -> Map<String, Value> {
    let accept = "application/json;v=v1beta1;g=config.k8s.io;as=Flagz";
    portico.admin().get_as("/flagz", accept).await.json()["flags"].as_object().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_starts_a_server_and_changes_no_default() {
    let config = example("config.yaml").display().to_string();
    let (configured, plain) =
        tokio::join!(Launch::new().args(&["--config", &config]).start(), Launch::new().start());
    let (configured, plain) = (flags(&configured).await, flags(&plain).await);
    let changed: BTreeSet<&str> = configured
        .iter()
        .filter(|(name, value)| plain[*name] != **value)
        .map(|(name, _)| name.as_str())
        .collect();
    // The harness sets the paths. The default mode is an empty list, which means RBAC.
    let expected = ["addresses-file", "authorization-mode", "config", "data-dir", "token-auth-file"];
    assert_eq!(changed, BTreeSet::from(expected));
}

#[test]
fn each_commented_setting_of_the_configuration_is_a_flag() {
    let help = portico(&["server", "--help"]);
    let text = read("config.yaml");
    let settings: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# ")?.split_once(": "))
        .map(|(name, _)| name)
        .filter(|name| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'))
        .collect();
    assert!(settings.contains(&"database-url") && settings.len() > 10, "{settings:?}");
    for name in settings {
        assert!(help.contains(&format!("--{name} ")), "{name} is not a flag");
    }
}

#[test]
fn the_manifests_of_the_product_can_be_applied() {
    let printed = portico(&["config", "check", example("product/manifests").to_str().unwrap()]);
    assert!(printed.contains("6 documents in 4 files: 0 errors, 0 warnings"), "{printed}");
}

#[test]
fn the_compose_file_uses_flags_and_files_that_exist() {
    let compose = yaml("compose.yaml");
    let service = &compose["services"]["portico"];
    assert_accepted(&strings(&service["command"]));
    let check = strings(&service["healthcheck"]["test"]);
    assert_eq!(check[..2], ["CMD", "/usr/bin/portico"]);
    assert_accepted(&check[2..]);
    for volume in strings(&service["volumes"]) {
        let source = volume.split(':').next().unwrap();
        let exists = match source.starts_with('.') {
            true => example(source).exists(),
            false => compose["volumes"].get(source).is_some(),
        };
        assert!(exists, "{volume}");
    }
}

#[test]
fn the_workflow_runs_commands_that_exist() {
    let workflow = yaml("github-actions/operator-tests.yaml");
    let steps = workflow["jobs"]["envtest"]["steps"].as_array().unwrap();
    let runs: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    let commands: Vec<&str> = runs.iter().filter_map(|run| run.strip_prefix("portico ")).collect();
    assert_eq!(commands.len(), 2, "{runs:?}");
    for command in &commands {
        let end = command.split_whitespace().take_while(|word| !["--", ">>"].contains(word));
        assert_accepted(&end.map(str::to_owned).collect::<Vec<_>>());
    }
    // The step that configures Portico for later steps prints a line for $GITHUB_ENV.
    let folder = tempfile::tempdir().unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-euc", &format!("\"$0\" {}; cat \"$GITHUB_ENV\"", commands[0])]).arg(portico_tests::binary());
    bash.env("HOME", folder.path()).env("GITHUB_ENV", folder.path().join("env")).env_remove("XDG_DATA_HOME");
    let printed = String::from_utf8(output(&mut bash).stdout).unwrap();
    let assets = printed.trim().strip_prefix("KUBEBUILDER_ASSETS=").unwrap();
    assert!(PathBuf::from(assets).join("kube-apiserver").is_file(), "{printed}");
}

#[test]
fn the_systemd_unit_uses_flags_that_exist() {
    let unit = std::fs::read_to_string(repository().join("packaging/systemd/portico.service")).unwrap();
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/portico ")).unwrap();
    assert_accepted(&command.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
}
