//! The command line: errors are one line and precede any listener; precedence of settings; exit.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Instant;

use portico_tests::process::any_file;
use portico_tests::{Launch, Portico, eventually, wait_until};
use rustix::process::Signal;

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_names_a_pipe_or_a_huge_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, huge) = (folder.path().join("pipe"), folder.path().join("huge"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    std::fs::File::create(&huge).unwrap().set_len(3 << 30).unwrap();
    let flags = [
        "--admission-control-config-file",
        "--allow-metric-labels-manifest",
        "--audit-policy-file",
        "--audit-webhook-config-file",
        "--authentication-config",
        "--authentication-token-webhook-config-file",
        "--authorization-config",
        "--client-ca-file",
        "--cluster-signing-cert-file",
        "--config",
        "--egress-selector-config-file",
        "--encryption-provider-config",
        "--kubelet-certificate-authority",
        "--peer-ca-file",
        "--requestheader-client-ca-file",
        "--service-account-key-file",
        "--service-account-signing-key-file",
        "--tls-cert-file",
        "--tls-sni-cert-key",
        "--token-auth-file",
        "--tracing-config-file",
    ];
    for (file, reason) in [(&pipe, "not a regular file"), (&huge, "larger than 64 MiB")] {
        let file = file.to_str().unwrap();
        for flag in flags {
            // Settings that require others.
            let others: &[&str] = match flag {
                "--cluster-signing-cert-file" => &["--cluster-signing-key-file", file],
                "--authorization-config" => &[],
                "--peer-ca-file" => &["--proxy-client-cert-file", file, "--proxy-client-key-file", file],
                "--service-account-key-file" => &["--service-account-signing-key-file", file],
                "--tls-cert-file" => &["--tls-private-key-file", file],
                "--requestheader-client-ca-file" => &["--requestheader-username-headers", "X-Remote-User"],
                _ => &[],
            };
            let named = if flag == "--tls-sni-cert-key" { format!("{file},{file}") } else { file.to_owned() };
            let (code, _, err) = Launch::new().args(&[flag, &named]).args(others).run().await;
            assert!(code.is_some_and(|code| code != 0), "{flag} {reason}: {err}");
            assert!(err.contains(reason), "{flag}: {err}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_value_is_reported_in_one_line_with_exit_code_2() {
    let file = any_file();
    let file = file.to_str().unwrap();
    for (args, setting) in [
        (&["--secure-port", "x"][..], "--secure-port"),
        (&["--secure-port", "70000"], "--secure-port"),
        (&["--bind-address", "nowhere"], "--bind-address"),
        (&["--control-address", "127.0.0.1"], "--control-address"),
        (&["--authorization-mode", "Sometimes"], "--authorization-mode"),
        (&["--request-timeout", "soon"], "--request-timeout"),
        (&["--goaway-chance", "0.5"], "--goaway-chance"),
        (&["--controllers", "no-such-controller"], "--controllers"),
        (&["--service-cluster-ip-range", "10.0.0.0/99"], "--service-cluster-ip-range"),
        (&["--feature-gates", "NoSuchGate=true"], "--feature-gates"),
        (&["--feature-gates", "SidecarContainers=false"], "--feature-gates"),
        (&["--runtime-config", "nothing.example.org/v1=true"], "--runtime-config"),
        (&["--tls-cert-file", file], "--tls-private-key-file"),
        (&["--client-ca-file", "/does/not/exist"], "--client-ca-file"),
        (&["--client-ca-file", file], "--client-ca-file"),
        (&["--token-auth-file", "/does/not/exist"], "--token-auth-file"),
        (&["--proxy-client-cert-file", file], "--proxy-client-key-file"),
        (&["--peer-ca-file", file], "--proxy-client-cert-file"),
        (&["--peer-advertise-ip", "192.0.2.1"], "--peer-advertise-port"),
        (&["--emulated-version=kube=1.35", "--peer-ca-file", file], "UnknownVersionInteroperabilityProxy"),
        (&["--egress-selector-config-file", "/does/not/exist"], "--egress-selector-config-file"),
        (&["--config", "/does/not/exist"], "--config"),
        (&["--config", file], "--config"),
        (&["--cors-allowed-origins", "("], "--cors-allowed-origins"),
        (&["--no-such-flag"], "--no-such-flag"),
    ] {
        let (launch, folder) = Launch::new().args(args).prepare_folder();
        let (code, out, err) = launch.run().await;
        assert_eq!(code, Some(2), "{args:?}: {out}{err}");
        let lines: Vec<&str> = err.lines().filter(|line| !line.starts_with("hint: ")).collect();
        assert_eq!(lines.len(), 1, "{args:?}: {err}");
        assert!(err.contains(setting), "{args:?}: {err}");
        assert!(!folder.join("data").exists(), "{args:?}: the server had already created its data folder");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_facade_requires_a_control_service() {
    let (code, _, err) = Launch::new().arg("facade").run().await;
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("--control-kubeconfig"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_and_files_are_checked_like_flags() {
    let (code, _, err) = Launch::new().env("PORTICO_SECURE_PORT", "x").run().await;
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("secure-port") || err.contains("PORTICO_SECURE_PORT"), "{err}");
    for text in ["no-such-key: 1\n", "request-timeout: x\n", "- a\n", "request-timeout: [1\n"] {
        let (launch, folder) = Launch::new().prepare_folder();
        let file = folder.join("config.yaml");
        std::fs::write(&file, text).unwrap();
        let (code, _, err) = launch.args(&["--config", file.to_str().unwrap()]).run().await;
        assert_eq!(code, Some(2), "{text}: {err}");
        assert_eq!(err.lines().count(), 1, "{text}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn version_and_help_succeed() {
    for args in [&["version"][..], &["--version"], &["-V"], &["server", "--version"]] {
        let done = std::process::Command::new(portico_tests::binary()).args(args).output().unwrap();
        let out = String::from_utf8(done.stdout).unwrap();
        assert_eq!(done.status.code(), Some(0), "{args:?}: {out}");
        assert!(
            out.contains(env!("CARGO_PKG_VERSION")) && out.contains("(Kubernetes v1."),
            "{args:?}: {out}"
        );
    }
    let (code, out, _) = Launch::new().args(&["server", "--help"]).run().await;
    assert_eq!(code, Some(0));
    for flag in
        ["--data-dir", "--secure-port", "--control-address", "--addresses-file", "--authorization-mode"]
    {
        assert!(out.contains(flag), "{flag} is not in --help");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flag_wins_over_a_variable_and_that_over_the_file() {
    let (launch, folder) = Launch::new().prepare_folder();
    let file = folder.join("config.yaml");
    // Only users of the token file are authenticated: the result shows which file was read.
    let tokens = |name: &str| {
        let path = folder.join(format!("{name}.csv"));
        std::fs::write(&path, format!("{name}-token,{name},1,system:masters\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (flag, variable, in_file) = (tokens("flag"), tokens("variable"), tokens("file"));
    std::fs::write(&file, format!("token-auth-file: {in_file}\nrequest-timeout: 50s\n")).unwrap();
    let config = file.to_str().unwrap();
    let launch = launch.args(&["--config", config]).env("PORTICO_TOKEN_AUTH_FILE", &variable);
    let from_variable = launch.clone().start().await;
    assert_eq!(from_variable.anonymous().as_user("variable").get("/apis").await.status, 200);
    assert_eq!(from_variable.anonymous().as_user("file").get("/apis").await.status, 401);
    drop(from_variable);
    let from_flag = launch.args(&["--token-auth-file", &flag]).start().await;
    assert_eq!(from_flag.anonymous().as_user("flag").get("/apis").await.status, 200);
    assert_eq!(from_flag.anonymous().as_user("variable").get("/apis").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_addresses_file_lists_bound_addresses_and_is_removed_on_a_clean_exit() {
    let mut portico = Portico::start().await;
    let text = std::fs::read_to_string(portico.addresses_file()).unwrap();
    for part in
        ["\"https\"", "\"grpc\"", "\"pid\"", &portico.https().to_string(), &portico.grpc().to_string()]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let start = Instant::now();
    let status = portico.stop().await;
    assert_eq!(status.code(), Some(0));
    assert!(start.elapsed().as_secs() < 10, "an idle process ends at once");
    assert!(!portico.addresses_file().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_data_is_refused() {
    let first = Portico::start().await;
    let second = Launch::new().with_data_of(&first).args(&["--addresses-file", "second.json"]);
    let (code, _, err) = second.run().await;
    assert!(code.is_some_and(|code| code != 0), "{err}");
    assert!(err.contains("data"), "the error names the data folder: {err}");
    assert_eq!(first.admin().get("/readyz").await.status, 200, "the first server continues");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_reported() {
    let first = Portico::start().await;
    let port = first.https().port().to_string();
    let (code, _, err) = Launch::new().args(&["--secure-port", &port]).run().await;
    assert!(code.is_some_and(|code| code != 0), "{err}");
    assert!(err.contains(&port), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_files_are_readable_by_their_owner_only() {
    let portico = Portico::start().await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&portico.data()), 0o700);
    for name in ["admin.kubeconfig", "facade.kubeconfig"] {
        assert_eq!(mode(&portico.data().join(name)), 0o600, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_survives_a_restart_and_so_do_certificates() {
    let mut portico = Portico::start().await;
    let object = portico_tests::objects::local_api_service("stays.example.com");
    let uid =
        portico.admin().post(portico_tests::objects::API_SERVICES, &object).await.json()["metadata"]["uid"]
            .clone();
    let ca = portico.ca().to_vec();
    assert!(portico.stop().await.success());
    portico.restart().await;
    let path = format!("{}/v1.stays.example.com", portico_tests::objects::API_SERVICES);
    assert_eq!(portico.admin().get(&path).await.json()["metadata"]["uid"], uid);
    assert_eq!(portico.ca(), ca);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_read_again_when_their_file_changes() {
    let portico = Portico::start().await;
    let file = portico.folder().join("tokens.csv");
    let dora = portico.anonymous().as_user("dora");
    assert_eq!(dora.get("/apis").await.status, 401);
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("dora-token,dora,uid-dora\n");
    std::fs::write(&file, text).unwrap();
    portico.signal(Signal::HUP);
    eventually("HTTP and gRPC accept the new token", || async {
        let http = dora.get("/apis").await.status;
        let list = portico_proto::apiregistration::ListRequest::default();
        let grpc = portico.control_as("dora").api_services().list(list).await.err().map(|e| e.code());
        if http == 200 && grpc == Some(tonic::Code::PermissionDenied) { Ok(()) } else { Err((http, grpc)) }
    })
    .await;
    // An invalid file changes nothing.
    std::fs::write(&file, "\"broken").unwrap();
    portico.signal(Signal::HUP);
    wait_until("both servers log the failed reload", async || {
        portico.log().matches("cannot reload a file").count() >= 2
    })
    .await;
    assert_eq!(dora.get("/apis").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_allowed_only_when_configured() {
    let portico = Launch::new().args(&["--authorization-mode", "AlwaysAllow"]).start().await;
    let alice = portico.anonymous().as_user("alice");
    assert_eq!(alice.get(portico_tests::objects::API_SERVICES).await.status, 200);
    assert_eq!(portico.anonymous().get("/apis").await.status, 401, "anonymous requests are rejected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_that_cannot_be_written_is_reported() {
    let (launch, folder) = Launch::new().prepare_folder();
    let file = folder.join("a-file");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let (code, _, err) = launch.args(&["--data-dir", file.join("data").to_str().unwrap()]).run().await;
    assert!(code.is_some_and(|code| code != 0), "{err}");
    assert!(err.contains("a-file"), "{err}");
}
