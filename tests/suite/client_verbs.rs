//! `portico` as a client of a running control service: output and exit code of each verb.

use std::io::Read;
use std::process::{Command, Output, Stdio};

use portico_tests::objects::API_SERVICES;
use portico_tests::{Backend, Portico, WAIT_LIMIT, binary};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

use crate::availability::trigger_probe;
use crate::proxying::{routed, wait_for};

const MANIFESTS: &str = "# two objects\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {app: x}}\ndata: {a: \"1\"}\n---\n\
    apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    \
    spec: {containers: [{name: c, image: nginx}]}\n";

/// Returns a command for a verb, as the administrator.
fn verb(portico: &Portico, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).env("KUBECONFIG", portico.data().join("admin.kubeconfig"));
    command
}

fn run(portico: &Portico, args: &[&str]) -> Output {
    verb(portico, args).stdin(Stdio::null()).output().unwrap()
}

/// Returns the output of a successful verb.
fn prints(portico: &Portico, args: &[&str]) -> String {
    let done = run(portico, args);
    assert_eq!(done.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Returns exit code and error line of a failing command. Only hints may follow the line.
fn fails(portico: &Portico, args: &[&str]) -> (i32, String) {
    let done = run(portico, args);
    let error = String::from_utf8(done.stderr).unwrap();
    let (line, hints) = error.split_once('\n').unwrap();
    assert!(hints.lines().all(|hint| hint.starts_with("hint: ")), "{args:?}: {error}");
    (done.status.code().unwrap(), format!("{line}\n"))
}

/// Writes a file of manifests; returns its path.
fn file(portico: &Portico, name: &str, text: &str) -> String {
    let path = portico.folder().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_applied_and_shown_by_each_name_and_format() {
    let portico = Portico::start().await;
    let manifests = file(&portico, "all.yaml", MANIFESTS);
    let applied = prints(&portico, &["apply", "-f", &manifests, "--dry-run"]);
    assert_eq!(
        applied,
        "configmap/one serverside-applied (server dry run)\ndeployment.apps/web serverside-applied (server dry run)\n"
    );
    let done = run(&portico, &["get", "cm", "-l", "app=x"]);
    assert_eq!((done.status.code(), &*done.stdout), (Some(0), &b""[..]), "a dry run writes nothing");
    assert_eq!(String::from_utf8_lossy(&done.stderr), "No resources found\n");

    let applied = prints(&portico, &["apply", "-f", &manifests]);
    assert_eq!(applied, "configmap/one serverside-applied\ndeployment.apps/web serverside-applied\n");
    for name in
        ["deployments", "deployment", "Deployment", "deploy", "deployments.apps", "deployments.v1.apps"]
    {
        let printed = prints(&portico, &["get", name]);
        assert!(
            printed.starts_with("NAME   READY   UP-TO-DATE   AVAILABLE   AGE\nweb    0/1"),
            "{name}: {printed}"
        );
    }
    assert!(prints(&portico, &["get", "deploy", "-o", "wide"]).contains("CONTAINERS   IMAGES   SELECTOR\n"));
    assert_eq!(prints(&portico, &["get", "deploy", "web", "-o", "name"]), "deployment.apps/web\n");
    let all = prints(&portico, &["get", "all", "-A"]);
    assert!(all.contains("NAMESPACE   NAME") && all.contains("default     deployment.apps/web"), "{all}");
    let json: Value = serde_json::from_str(&prints(&portico, &["get", "cm", "one", "-o", "json"])).unwrap();
    assert_eq!((&json["kind"], &json["data"]["a"]), (&Value::from("ConfigMap"), &Value::from("1")));
    let yaml = prints(&portico, &["get", "cm", "one", "-o", "yaml"]);
    assert!(yaml.contains("data:\n  a: \"1\"\n") && yaml.contains("  name: one\n"), "{yaml}");
    let listed: Value =
        serde_json::from_str(&prints(&portico, &["get", "cm", "-l", "app=x", "-o", "json"])).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_one_line_with_exit_code_2() {
    let portico = Portico::start().await;
    let whole = file(&portico, "whole.yaml", MANIFESTS);
    prints(&portico, &["apply", "-f", &whole, "--field-manager", "first"]);
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: \"2\"}\n";
    let other = file(&portico, "other.yaml", other);
    let nameless = file(&portico, "nameless.yaml", "apiVersion: v1\nkind: ConfigMap\n");
    let unknown = file(&portico, "unknown.yaml", "apiVersion: v9\nkind: Nothing\nmetadata: {name: a}\n");
    let broken = file(&portico, "broken.yaml", "kind: [\n");
    let empty = file(&portico, "empty.yaml", "apiVersion: v1\nkind: List\nitems: []\n");
    let item = "{apiVersion: v1, kind: Namespace, metadata: {name: first}}";
    let list = format!("apiVersion: v1\nkind: List\nitems: [{item}, {{kind: ConfigMap}}]\n");
    let list = file(&portico, "list.yaml", &list);
    let owned = prints(&portico, &["get", "cm", "one", "-o", "yaml", "--show-managed-fields"]);
    let owned = file(&portico, "owned.yaml", &owned);
    for (args, reason) in [
        (&["get", "flunders"][..], "has no resource named \"flunders\""),
        (&["get", "cm", "missing"], "configmaps \"missing\" not found"),
        (&["get", "cm", "-l", "=="], "found '=='"),
        (&["get", "all", "web"], "names several resources"),
        (&["get", "cm", "one", "-A"], "a resource cannot be retrieved by name across all namespaces"),
        (&["tree", "nosuch"], "group \"nosuch\" not found"),
        (&["routes", "nosuch", "-o", "json"], "group \"nosuch\" not found"),
        (&["apply", "-f", &empty], "the files contain no object"),
        (&["apply", "-f", &list], "list.yaml, document 1, item 2: a manifest needs"),
        (&["apply", "-f", &owned], "metadata.managedFields must be nil"),
        (&["apply", "-f", &other], "conflict with \"first\": .data.a"),
        (&["apply", "-f", &nameless], "nameless.yaml, document 1: a manifest needs"),
        (&["apply", "-f", &unknown], "has no kind Nothing in v9"),
        (&["apply", "-f", &broken], "broken.yaml, document 1"),
        (&["apply", "-f", "/does/not/exist"], "/does/not/exist"),
        (&["explain", "nonsense/a/b/c"], "is not a path below /api or /apis"),
        (&["man", "no-such-verb"], "unknown command: no-such-verb"),
    ] {
        let (code, error) = fails(&portico, args);
        assert_eq!(code, 2, "{args:?}");
        assert!(error.contains(reason), "{args:?}: {error}");
    }
    assert_eq!(
        prints(&portico, &["apply", "-f", &other, "--force-conflicts", "-o", "name"]),
        "configmap/one\n"
    );
    let done = verb(&portico, &["get", "cm"]).env("KUBECONFIG", "/does/not/exist").output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", String::from_utf8_lossy(&done.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_of_get_can_be_applied() {
    let portico = Portico::start().await;
    prints(&portico, &["apply", "-f", &file(&portico, "all.yaml", MANIFESTS)]);
    for format in ["yaml", "json"] {
        let get_output = |args: &[&str]| prints(&portico, &[&["get"], args, &["-o", format]].concat());
        for (args, applied) in [
            (&["cm", "one"][..], "configmap/one serverside-applied\n"),
            (&["cm", "-l", "app=x"], "configmap/one serverside-applied\n"),
            (&["all"], "deployment.apps/web serverside-applied\n"),
        ] {
            let text = get_output(args);
            assert!(!text.contains("managedFields"), "{text}");
            let path = file(&portico, "shown", &text);
            assert!(prints(&portico, &["apply", "-f", &path]).contains(applied), "{text}");
            let owned = get_output(&[args, &["--show-managed-fields"]].concat());
            assert!(owned.contains("managedFields"), "{owned}");
        }
        let applied = ["apply", "-f", &file(&portico, "all.yaml", MANIFESTS), "-o", format];
        assert!(!prints(&portico, &applied).contains("managedFields"));
    }
    let list: Value = serde_json::from_str(&prints(&portico, &["get", "all", "-o", "json"])).unwrap();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&"List".into(), &"v1".into()));
    let kinds = list["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap());
    assert!(kinds.clone().any(|kind| kind == "Deployment") && kinds.clone().any(|kind| kind == "Service"));
    let none = prints(&portico, &["get", "cm", "-l", "app=y", "-o", "yaml"]);
    assert_eq!(none, "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_and_wrong_servers_are_named() {
    let portico = Portico::start().await;
    let config = std::fs::read_to_string(portico.data().join("admin.kubeconfig")).unwrap();
    let closed = "127.0.0.1:1";
    let dead = config.replace(&portico.grpc().to_string(), closed);
    let dead = file(&portico, "dead", &dead);
    let refused = format!("the control service at {closed} cannot be reached: connection refused\n");
    for args in [
        &["get", "cm"][..],
        &["tree"],
        &["explain", "v1."],
        &["history", "cm", "one"],
        &["secrets", "rewrap"],
        &["crds", "check", &file(&portico, "crd", "kind: CustomResourceDefinition\n")],
    ] {
        let (code, error) = fails(&portico, &[args, &["--kubeconfig", &dead]].concat());
        assert!(code == 2 && error.ends_with(&refused), "{args:?}: {code} {error}");
    }
    for args in [&["--until-available"][..], &[]] {
        let watch = [&["watch", "--timeout", "1", "--kubeconfig", &dead], args].concat();
        let done = run(&portico, &watch);
        let error = String::from_utf8(done.stderr).unwrap();
        let refused = refused.trim_end();
        let lines = format!("portico: watch: {refused}; retrying\nportico: watch: {refused}\nhint: ");
        let waiting = "portico: watch: waiting for all APIServices to become available, timeout 1 s\n";
        let rest = if args.is_empty() { error.as_str() } else { error.strip_prefix(waiting).unwrap() };
        assert!(done.status.code() == Some(2) && rest.starts_with(&lines), "{args:?}: {error}");
    }
    let (code, error) = fails(&portico, &["get", "cm", "--context", "portico"]);
    let address = portico.https();
    let what = format!(
        "the server at {address} is not a control service (HTTP 404 Not Found): use context control of"
    );
    assert!(code == 2 && error.contains(&what), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubeconfig_names_files_as_kubectl_reads_them() {
    let portico = Portico::start().await;
    let admin = portico.data().join("admin.kubeconfig");
    let admin = admin.to_str().unwrap();
    let namespaced = "current-context: portico\ncontexts:\n\
        - {name: portico, context: {cluster: portico, user: admin, namespace: kube-system}}\n";
    let first = file(&portico, "first", namespaced);
    let missing = portico.folder().join("missing");
    let list = format!("{}:{first}::{admin}", missing.display());
    let with = |kubeconfig: &str, args: &[&str]| {
        let mut command = verb(&portico, args);
        let done = command.env("KUBECONFIG", kubeconfig).current_dir(portico.folder()).output().unwrap();
        (done.status.code(), String::from_utf8([done.stdout, done.stderr].concat()).unwrap())
    };
    let namespace = ["get", "cm", "extension-apiserver-authentication", "-o", "name"];
    assert_eq!(with(&list, &namespace), (Some(0), format!("configmap/{}\n", namespace[2])));
    assert_eq!(with(admin, &namespace).0, Some(2), "the ConfigMap is in kube-system");
    assert_eq!(with(&list, &["route", "try", "/version"]).0, Some(0));
    // The value of a flag is one file name, even if it contains a separator.
    assert_eq!(with("/nowhere", &["get", "cm", "--kubeconfig", admin]).0, Some(0));
    assert_eq!(with(admin, &["get", "cm", "--kubeconfig", &list]).0, Some(2));
    let (code, error) = with("", &["get", "cm"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("portico-data/admin.kubeconfig: no such file"), "{error}");
}

#[test]
fn usage_errors_name_the_required_arguments() {
    let usage = |args: &[&str]| {
        let done = Command::new(binary()).args(args).env("KUBECONFIG", "x").output().unwrap();
        let text = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        text.lines().find_map(|line| line.strip_prefix("Usage: ").map(str::to_owned)).unwrap_or(text)
    };
    for (args, expected) in [
        (&["config"][..], "portico config <COMMAND>"),
        (&["crds", "--help"], "portico crds <COMMAND>"),
        (&["secrets", "rewrap", "--help"], "portico secrets rewrap [OPTIONS]"),
        (&["testenv", "install"], "portico testenv install <DIR>"),
        (&["get"], "portico get <RESOURCE> [NAME]"),
        (&["route", "try"], "portico route try <PATH>"),
    ] {
        assert_eq!(usage(args), expected, "{args:?}");
    }
    for args in [
        &["get", "cm", ""][..],
        &["get", ""],
        &["history", "cm", ""],
        &["history", "cm", "one", "--limit", "0"],
        &["diff", "cm", ""],
        &["diff", "cm", "one", "--to", "0"],
        &["undelete", "cm", ""],
        &["route", "try", "/version", "-o", "name"],
    ] {
        let done = Command::new(binary()).args(args).output().unwrap();
        let error = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(2) && error.contains("value"), "{args:?}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_backend_is_explained_in_the_table_in_the_tree_and_by_exit_codes() {
    let mut backend = Backend::start("dead.example.com").await;
    let portico = routed(&backend).await;
    let name = backend.name();
    let address = backend.url().trim_start_matches("https://").to_owned();
    let explained = prints(&portico, &["explain", &name]);
    assert!(explained.starts_with(&format!("{name} is reachable\nSTAGE ")), "{explained}");
    assert!(prints(&portico, &["routes", "dead.example.com", "-o", "wide"]).contains(&address));
    assert_eq!(
        prints(&portico, &["tree", "dead.example.com"])
            .lines()
            .last()
            .unwrap()
            .trim_start_matches([' ', '└', '─']),
        address
    );

    backend.stop().await;
    trigger_probe(&portico, &backend).await;
    wait_for(&portico, &backend, "False").await;
    let done = run(&portico, &["explain", &backend.path("/flunders")]);
    let explained = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(1), "{explained}");
    assert!(explained.contains(" fails at ") && explained.contains("connection refused"), "{explained}");
    let done = run(&portico, &["explain", &name, "-o", "json"]);
    let json: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        (done.status.code(), &json["ok"], &json["apiService"]),
        (Some(1), &false.into(), &name.clone().into())
    );
    let listed: Value =
        serde_json::from_str(&prints(&portico, &["routes", "dead.example.com", "-o", "json"])).unwrap();
    assert_eq!(
        (&listed[0]["available"], &listed[0]["reason"]),
        (&false.into(), &"FailedDiscoveryCheck".into())
    );
    assert!(prints(&portico, &["tree"]).contains("Unavailable  FailedDiscoveryCheck: "));
    let done = run(&portico, &["watch", &name, "--until-available", "--timeout", "1"]);
    let printed = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(1), "{printed}");
    assert!(printed.starts_with(&format!("{name} unavailable: ")), "{printed}");
    let done = run(&portico, &["watch", "nosuch", &name, "--until-available", "--timeout", "1"]);
    let error = String::from_utf8(done.stderr).unwrap();
    let waiting = format!("portico: watch: waiting for nosuch, {name} to become available, timeout 1 s\n");
    let missing = format!("APIService nosuch does not exist, {name} is unavailable");
    let expected = format!("{waiting}portico: watch: timed out after 1 s: {missing}\n");
    assert_eq!((done.status.code(), error), (Some(1), expected));

    let waiting =
        verb(&portico, &["watch", &name, "--until-available"]).stdout(Stdio::piped()).spawn().unwrap();
    backend.resume().await;
    let done = waiting.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert!(String::from_utf8(done.stdout).unwrap().ends_with(&format!("{name} available\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_gets_a_colored_table_updated_in_place() {
    let backend = Backend::start("drawn.example.com").await;
    let portico = Portico::start().await;
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let stdout = std::fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut watch = {
        // The terminal ends when no process has it open, including this command.
        let mut command = verb(&portico, &["watch", &backend.name(), "--until-available"]);
        command.env("TERM", "xterm").env_remove("NO_COLOR").stdout(stdout).spawn().unwrap()
    };
    assert_eq!(portico.admin().post(API_SERVICES, &backend.api_service()).await.status, 201);
    let drawn = tokio::task::spawn_blocking(move || {
        let (mut terminal, mut drawn) = (std::fs::File::from(terminal), Vec::new());
        let mut part = [0; 4096];
        // Reading fails when the last program that had it open has ended.
        while let Ok(read @ 1..) = terminal.read(&mut part) {
            drawn.extend_from_slice(&part[..read]);
        }
        String::from_utf8(drawn).unwrap()
    });
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    let drawn = drawn.await.unwrap();
    assert!(drawn.contains("0 of 0 available") && drawn.contains("1 of 1 available"), "{drawn:?}");
    assert!(drawn.contains("\u{1b}[2A\u{1b}[J"), "{drawn:?}");
    assert!(drawn.contains("\u{1b}[32mTrue\u{1b}[0m"), "{drawn:?}");
}

#[test]
fn help_completions_and_manual_pages_know_every_verb() {
    let run = |args: &[&str]| {
        let done = Command::new(binary()).args(args).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let help = run(&["-h"]);
    assert!(help.lines().count() <= 60 && help.lines().all(|line| line.len() <= 100), "{help}");
    let groups = ["Run:", "Inspect:", "Change:", "Data:", "Check and test:", "Other:"];
    assert!(groups.iter().all(|group| help.lines().any(|line| line == *group)), "{help}");
    assert_eq!(run(&["--help"]), help);
    assert_eq!(run(&["help"]), help);
    let listed = help.lines().take_while(|line| !line.starts_with("Flags"));
    let verbs: Vec<&str> = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert_eq!(verbs.len(), 26, "{verbs:?}");
    let flags = run(&["help", "flags"]);
    let common = help.lines().filter_map(|line| line.trim_start().strip_prefix("--")?.split(' ').next());
    let common: Vec<&str> = common.collect();
    assert!(
        common.len() == 9 && common.iter().all(|flag| flags.contains(&format!("--{flag}"))),
        "{common:?}"
    );
    assert!(flags.contains("\nAuthentication:\n") && flags.contains("--write-queue"), "{flags}");
    for role in ["run", "server", "facade"] {
        let help = run(&[role, "--help"]);
        assert!(help.contains("\nAuthentication:\n") && help.contains("--write-queue"), "{help}");
    }
    let codes = run(&["help", "exit-codes"]);
    assert!(["0  ", "1  ", "2  ", "3  ", "126", "127"].iter().all(|code| codes.contains(code)), "{codes}");
    let folder = tempfile::tempdir().unwrap();
    run(&["man", "--dir", folder.path().to_str().unwrap()]);
    for verb in &verbs {
        assert!(folder.path().join(format!("portico-{verb}.1")).exists(), "{verb}");
        let help = run(&[verb, "--help"]);
        assert_eq!(run(&["help", verb]).trim_end(), help.trim_end(), "{verb}");
        let groups_and_version = ["route", "secrets", "crds", "config", "testenv", "version"];
        assert_eq!(help.contains("Exit codes: "), !groups_and_version.contains(verb), "{help}");
        for shell in ["bash", "zsh", "fish"] {
            assert!(run(&["completion", shell]).contains(verb), "{shell}: {verb}");
        }
    }
    let script = folder.path().join("completions");
    std::fs::write(&script, run(&["completion", "bash"])).unwrap();
    assert!(Command::new("bash").arg("-n").arg(&script).status().unwrap().success());
}

/// Writes a copy of the administrator's kubeconfig with these namespaces in its contexts; returns its path.
fn kubeconfig(portico: &Portico, name: &str, namespaces: &[(&str, &str)]) -> String {
    let mut config = kube::config::Kubeconfig::read_from(portico.data().join("admin.kubeconfig")).unwrap();
    for context in &mut config.contexts {
        let configured = namespaces.iter().find(|(name, _)| *name == context.name);
        context.context.as_mut().unwrap().namespace =
            configured.map(|(_, namespace)| (*namespace).to_owned());
    }
    file(portico, name, &serde_json::to_string(&config).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs_use_the_namespace_of_the_context_or_flag() {
    let portico = Portico::start().await;
    let namespaces = "apiVersion: v1\nkind: Namespace\nmetadata: {name: demo}\n---\n\
        apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n";
    let manifest = |name: &str| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{app: x}}}}\ndata: {{a: b}}\n"
        );
        file(&portico, &format!("{name}.yaml"), &text)
    };
    prints(&portico, &["apply", "-f", &file(&portico, "namespaces.yaml", namespaces)]);
    // As `kubectl config set-context --current --namespace demo` writes it.
    let current = kubeconfig(&portico, "current", &[("portico", "demo")]);
    let with =
        |kubeconfig: &str, args: &[&str]| prints(&portico, &[args, &["--kubeconfig", kubeconfig]].concat());
    let names = |kubeconfig: &str, args: &[&str]| {
        with(kubeconfig, &[&["get", "cm", "-l", "app=x", "-o", "name"], args].concat())
    };
    with(&current, &["apply", "-f", &manifest("one")]);
    assert_eq!(names(&current, &[]), "configmap/one\n");
    assert_eq!(names(&current, &["-n", "default"]), "");
    assert_eq!(
        names(&current, &["-n", ""]),
        "configmap/one\n",
        "an empty namespace is ignored, as by kubectl"
    );
    assert_eq!(names(&current, &["-n", "default", "-A"]), "configmap/one\n", "-A overrides -n");
    assert_eq!(names(&current, &["--context", "control"]), "", "the context has no namespace");
    let plain = portico.data().join("admin.kubeconfig");
    assert_eq!(names(plain.to_str().unwrap(), &[]), "");
    assert!(with(&current, &["history", "cm", "one"]).contains("Created"));
    assert!(run(&portico, &["diff", "cm", "one", "--kubeconfig", &current]).status.code() == Some(1));
    assert!(with(&current, &["get", "namespaces", "-o", "name"]).contains("namespace/demo"));

    // The namespace of the selected context, if it has one.
    let both = kubeconfig(&portico, "both", &[("portico", "demo"), ("control", "other")]);
    with(&both, &["apply", "-f", &manifest("two")]);
    assert_eq!(names(&both, &[]), "configmap/two\n");
    assert_eq!(names(&both, &["--namespace=demo"]), "configmap/one\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_flags_may_precede_a_command_and_errors_name_the_place_of_other_flags() {
    let portico = Portico::start().await;
    let path = portico.data().join("admin.kubeconfig");
    let kubeconfig = path.to_str().unwrap();
    let without = |args: &[&str]| {
        let mut command = Command::new(binary());
        let done = command.args(args).env_remove("KUBECONFIG").stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        (done.status.code(), text)
    };
    for args in [
        &["--kubeconfig", kubeconfig, "get", "namespaces"][..],
        &["--context=control", "--kubeconfig", kubeconfig, "get", "-A", "namespaces"],
        &["-n", "kube-system", "--kubeconfig", kubeconfig, "get", "cm"],
        &["--kubeconfig", kubeconfig, "tree"],
        &["tree", "--data-dir", portico.data().to_str().unwrap()],
        &["tree", "--kubeconfig", kubeconfig, "--server", &portico.grpc().to_string()],
        &["--kubeconfig", kubeconfig, "watch", "--timeout", "1"],
        &["--kubeconfig", kubeconfig, "route", "try", "/version"],
        &["route", "try", "/version", "--kubeconfig", kubeconfig, "--server", &portico.https().to_string()],
    ] {
        let (code, text) = without(args);
        assert_eq!(code, Some(0), "{args:?}: {text}");
    }
    let behind = "hint: flags of a command go behind the command";
    for (args, error, hint) in [
        (
            &["--secure-port", "0", "get", "pods"][..],
            "--secure-port: before the command, only servers have this flag",
            behind,
        ),
        (&["--data-dir", "x", "get", "pods"], "before the command, only servers have this flag", behind),
        (&["--selector", "a=b", "get", "pods"], "--selector: unknown flag", "these have it: get"),
        (&["--no-such", "get", "pods"], "--no-such: unknown flag", "`portico help flags` lists"),
        (&["--secure-prot=0"], "--secure-prot: unknown flag", "did you mean --secure-port?"),
        (&["serve"], "serve: unknown command", "did you mean server?"),
        (&["-Aoname", "get", "pods"], "-A: unknown flag", behind),
        (&["crds", "check", "--ouput", "json", "x"], "--ouput: unknown flag", "did you mean --output?"),
        (&["crds", "check", "--foo", "x"], "--foo: unknown flag", "`portico crds check --help` lists"),
        (&["route", "try", "/x", "-z"], "-z: unknown flag", "`portico route try --help` lists"),
        (&["crds", "frobnicate"], "frobnicate: unknown command", "`portico crds --help` lists"),
        (&["config", "chekc", "x"], "chekc: unknown command", "did you mean check?"),
        (
            &["tree", "-n", "x"],
            "--namespace does not apply to `portico tree`",
            "commands with this flag: get, ",
        ),
        (
            &["-n", "x", "route", "try", "/version"],
            "apply to `portico route try`",
            "the path names the namespace",
        ),
        (&["config", "check", "x", "--server", "y"], "apply to `portico config check`", "contacts no server"),
        (&["--context=x", "version"], "--context does not apply to `portico version`", "contacts no server"),
        (&["--server", "x"], "--server does not apply to `portico`", "--control-kubeconfig"),
    ] {
        let (code, text) = without(args);
        let lines: Vec<&str> = text.lines().collect();
        let is_explained = lines.len() == 2 && lines[0].ends_with(error) && lines[1].contains(hint);
        assert!(code == Some(2) && is_explained, "{args:?}: {text}");
    }
    let (code, text) = without(&["--secure-port", "abc", "--data-dir", "get"]);
    assert!(code == Some(2) && text.contains("abc") && !text.contains("hint"), "{text}");
    let (code, text) = without(&["server", "--kubeconfig", kubeconfig]);
    assert!(code == Some(2) && text.contains("hint: a facade finds its control service with"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_a_start_and_of_missing_data_have_a_hint() {
    let portico = Portico::start().await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "secure-prot: 0\n").unwrap();
    let (config, data) = (config.to_str().unwrap(), portico.data());
    let (https, grpc) = (portico.https(), portico.grpc());
    let port = format!("--secure-port={}", https.port());
    let address = format!("--control-address={grpc}");
    let kubeconfig = data.join("admin.kubeconfig");
    for (args, error, hint) in [
        (&["--config", config][..], "unknown key \"secure-prot\"", "hint: did you mean secure-port?"),
        (&["--enable-admission-plugins=No"], "plugin \"No\" is unknown", "hint: the plugins are "),
        (&["--controllers=no"], "\"no\" is not in the list of known controllers: ", "namespace-controller, "),
        (
            &["--data-dir", data.to_str().unwrap(), "--secure-port=0", "--control-address=127.0.0.1:0"],
            "portico.db is in use by process ",
            "hint: stop that process, or choose another folder",
        ),
        (
            &["--ephemeral", "--bind-address=127.0.0.1", &port],
            "cannot listen on 127.0.0.1:",
            "hint: stop the process that listens there, or choose another port",
        ),
        (
            &["--ephemeral", &address],
            "address already in use",
            "choose another address with --control-address",
        ),
        (&["doctor", "--data-dir", "missing"], "portico.db does not exist", "hint: name the data folder"),
        (
            &["backup", "--to", "copy", "--data-dir", "missing"],
            "portico.db: no database found",
            "hint: name the data folder",
        ),
        (&["backup"], "--to: required, and not given", "Usage: portico backup"),
        (
            &["get", "cm", "--kubeconfig", kubeconfig.to_str().unwrap(), "--context", "no"],
            "no context named \"no\"",
            "hint: `kubectl config get-contexts",
        ),
    ] {
        let mut command = tokio::process::Command::new(binary());
        command.args(args).current_dir(folder.path()).env_remove("KUBECONFIG").stdin(Stdio::null());
        let done = tokio::time::timeout(WAIT_LIMIT, command.kill_on_drop(true).output());
        let done = done.await.unwrap_or_else(|_| panic!("{args:?} still runs")).unwrap();
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && text.contains(error) && text.contains(hint), "{args:?}: {text}");
    }
}

#[test]
fn commands_about_data_take_the_same_flags_for_its_location() {
    let places = ["--data-dir", "--database-url", "--etcd-servers", "--kubeconfig", "--context", "--server"];
    let help = |verb: &[&str]| {
        let done = Command::new(binary()).args(verb).arg("-h").output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    for verb in ["backup", "restore", "migrate", "doctor"] {
        let help = help(&[verb]);
        let section = help.split_once("\nData location:\n").unwrap().1;
        assert!(places.iter().all(|place| section.contains(&format!("{place} <"))), "{verb}: {section}");
    }
    let verbs = [
        &["get"][..],
        &["history"],
        &["secrets", "rewrap"],
        &["crds", "check"],
        &["watch"],
        &["route", "try"],
    ];
    for verb in verbs {
        let help = help(verb);
        let section = help.split_once("\nServer:\n").unwrap().1;
        let places = ["--data-dir", "--kubeconfig", "--context", "--server"];
        assert!(places.iter().all(|place| section.contains(&format!("{place} <"))), "{verb:?}: {section}");
    }
}
