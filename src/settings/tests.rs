//! Tests of the precedence and validation of settings.

use super::*;

/// Parses a command line in which one word may name the role, and `--` precedes a program.
fn settings(arguments: &[&str]) -> Result<(Role, Settings), String> {
    let mut words = arguments.split(|word| *word == "--");
    let flags = words.next().unwrap_or_default().iter().copied();
    let program = words.next().unwrap_or_default().iter().map(OsString::from).collect();
    let roles = [("run", Role::AllInOne), ("server", Role::Server), ("facade", Role::Facade)];
    let role_of = |word: &str| roles.iter().find(|(name, _)| *name == word).map(|(_, role)| *role);
    let role = flags.clone().find_map(role_of).unwrap_or(Role::AllInOne);
    let flags = flags.filter(|word| role_of(word).is_none()).map(OsString::from).collect();
    let settings = parse(role, flags, program).map_err(|error| error.to_string())?;
    Ok((role, settings))
}

fn refusal(arguments: &[&str]) -> String {
    settings(arguments).err().unwrap()
}

fn file(text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("portico.yaml");
    std::fs::write(&path, text).unwrap();
    let flag = format!("--config={}", path.display());
    (dir, flag)
}

#[test]
fn ephemeral_changes_defaults_that_are_not_set_explicitly() {
    let (role, ephemeral) = settings(&["run", "--ephemeral", "--", "true", "--secure-port=1"]).unwrap();
    assert_eq!(role, Role::AllInOne);
    assert_eq!(ephemeral.command, ["true", "--secure-port=1"]);
    assert_eq!((ephemeral.serving.secure_port, ephemeral.control.control_address.port()), (0, 0));
    assert!(ephemeral.store.unsafe_no_fsync && !ephemeral.serving.shutdown_drain);
    assert_eq!(ephemeral.process.verbosity, "error");
    let (_dir, config) = file("ephemeral: true\nsecure-port: 7443\n");
    let (_, explicit) =
        settings(&["run", &config, "--unsafe-no-fsync=false", "-v", "info", "--", "true"]).unwrap();
    assert_eq!((explicit.serving.secure_port, explicit.store.unsafe_no_fsync), (7443, false));
    assert_eq!((explicit.process.verbosity.as_str(), explicit.control.control_address.port()), ("info", 0));
    let (_, regular) = settings(&["run"]).unwrap();
    assert!(regular.command.is_empty() && !regular.store.unsafe_no_fsync && regular.serving.shutdown_drain);
    for store in ["--data-dir=x", "--etcd-servers=http://a:2379", "--database-url=postgres://u@h/d"] {
        assert!(refusal(&["run", "--ephemeral", store]).starts_with("--ephemeral: "), "{store}");
    }
}

#[test]
fn a_program_of_another_name_has_other_defaults_and_the_last_flag_wins() {
    let argv = ["kube-apiserver", "--v=1", "--v=2", "--feature-gates=A=true", "--feature-gates=B=true"];
    let command = with_defaults(command(), &[("controllers", "")]).args_override_self(true);
    let matches = command.try_get_matches_from(argv).unwrap();
    let texts =
        |id: &str| matches.get_raw(id).unwrap().map(|text| text.to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(texts("verbosity"), ["2"]);
    assert_eq!(texts("feature_gates"), ["A=true", "B=true"]);
    assert_eq!(texts("controllers"), [""]);
}

#[test]
fn a_flag_overrides_the_file_in_any_position() {
    let (_dir, config) =
        file("secure-port: 1\nrequest-timeout: 5s\ncontrollers: []\nrequestheader-allowed-names: [a, b]\n");
    for arguments in [vec!["--secure-port=2", &config], vec!["server", &config, "--secure-port=2"]] {
        let (_, settings) = settings(&arguments).unwrap();
        assert_eq!(settings.serving.secure_port, 2);
        assert_eq!(settings.serving.request_timeout.as_secs(), 5);
        assert_eq!(settings.authentication.requestheader_allowed_names, ["a", "b"]);
    }
}

#[test]
fn errors_are_one_line_that_names_the_setting() {
    let (_dir, unknown) = file("no-such-thing: 1\n");
    let (_dir2, invalid) = file("secure-port: many\n");
    let rows: [(&[&str], &str); 12] = [
        (&["--secure-port=70000"], "--secure-port"),
        (&["--goaway-chance=0.5"], "--goaway-chance"),
        (&["--request-timeout=60"], "--request-timeout"),
        (&["--authorization-mode=ABAC"], "--authorization-mode"),
        (&["--authorization-mode=Node,RBAC,Node"], "--authorization-mode"),
        (&["--tls-cert-file=x"], "--tls-private-key-file"),
        (&["--controllers=no-such"], "--controllers"),
        (&["--disable-admission-plugins=Priority,No"], "--disable-admission-plugins"),
        (
            &["--enable-admission-plugins=Priority", "--disable-admission-plugins=Priority"],
            "--enable-admission-plugins",
        ),
        (&["--nonsense"], "--nonsense"),
        (&[&unknown], "no-such-thing"),
        (&[&invalid], "--secure-port"),
    ];
    for (arguments, word) in rows {
        let text = refusal(arguments);
        assert!(text.contains(word) && !text.contains('\n'), "{arguments:?}: {text}");
    }
    assert!(refusal(&["facade"]).starts_with("--control-kubeconfig"));
}

#[test]
fn a_misspelt_flag_gets_a_suggestion() {
    assert_eq!(refusal(&["--secure-prot=0"]), "--secure-prot: unknown flag; did you mean --secure-port?");
    assert_eq!(refusal(&["--secure-port=0", "--secure-port=1"]), "--secure-port: given twice");
}

#[test]
fn the_file_sets_switches() {
    let url = "--database-url=postgres://u@h/d";
    let (_dir, config) = file("database-transaction-pooler: true\n");
    assert!(settings(&[&config, url]).unwrap().1.store.database_transaction_pooler);
    assert!(settings(&["--database-transaction-pooler", url]).unwrap().1.store.database_transaction_pooler);
}

#[test]
fn a_flag_without_the_flag_that_it_requires_is_rejected() {
    let (_dir, config) = file("manifests-max-files: 5\n");
    for (arguments, error) in [
        (&["--database-password-file=x"][..], "--database-password-file: requires --database-url"),
        (&["--database-poll-interval=1s"], "--database-poll-interval: requires --database-url"),
        (&["--manifests-prune"], "--manifests-prune: requires --manifests"),
        (&[&config], "--manifests-max-files: requires --manifests"),
        (&["--test-faults", "--ephemeral=false"], "--test-faults: requires --ephemeral"),
    ] {
        assert_eq!(refusal(arguments), error);
    }
    for accepted in
        ["--manifests-prune=false", "--etcd-prefix=/x", "--etcd-cafile=x", "--etcd-compaction-interval=1m"]
    {
        assert!(settings(&[accepted]).is_ok(), "{accepted}");
    }
}

#[test]
fn files_are_checked_before_anything_binds() {
    let (dir, _) = file("");
    let (missing, garbage) = (dir.path().join("missing"), dir.path().join("portico.yaml"));
    for setting in ["--client-ca-file", "--token-auth-file", "--egress-selector-config-file"] {
        let text = refusal(&[&format!("{setting}={}", missing.display())]);
        assert!(text.starts_with(setting) && text.ends_with("no such file or directory"), "{text}");
    }
    let text = refusal(&[
        &format!("--requestheader-client-ca-file={}", garbage.display()),
        "--requestheader-username-headers=X",
    ]);
    assert!(
        text.starts_with("--requestheader-client-ca-file") && text.ends_with("contains no PEM certificate"),
        "{text}"
    );
}

#[test]
fn every_flag_has_an_environment_variable() {
    let command = command();
    for argument in command.get_arguments().filter(|a| a.get_long().is_some_and(|l| l != "help")) {
        assert!(argument.get_env().is_some(), "{argument:?}");
    }
}

/// Articles and question words, with which no help text may begin.
const FORBIDDEN_FIRST_WORDS: [&str; 12] =
    ["How", "Whether", "What", "Which", "Who", "Whom", "Where", "When", "Why", "The", "A", "An"];

#[test]
fn every_flag_has_a_heading_and_a_short_line_of_help() {
    for argument in command().get_arguments().filter(|argument| !argument.is_hide_set()) {
        let Some(long) = argument.get_long().filter(|long| !matches!(*long, "help" | "version")) else {
            continue;
        };
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let first = help.split(' ').next().unwrap_or_default();
        assert!((10..=110).contains(&help.chars().count()), "--{long}: {help}");
        assert!(!FORBIDDEN_FIRST_WORDS.contains(&first), "--{long}: {help}");
        assert!(argument.get_help_heading().is_some(), "--{long} has no heading");
    }
}

#[test]
fn the_documented_file_of_settings_contains_the_defaults() {
    let page = include_str!("../../docs/reference/config-file.md");
    let yaml = page.split_once("```yaml\n").unwrap().1.split_once("\n```").unwrap().0;
    let (_dir, config) = file(yaml);
    let (documented, defaults) = (settings(&[&config]).unwrap().1, settings(&[]).unwrap().1);
    let without_config = |mut settings: Settings| {
        settings.flag_values.remove("config");
        settings.flag_values
    };
    assert_eq!(without_config(documented), without_config(defaults));
}

#[test]
fn every_flag_of_kube_apiserver_is_known() {
    let command = command();
    for name in include_str!("kube_apiserver_flags.txt").lines() {
        let is_known = command.get_arguments().any(|argument| argument.get_long() == Some(name));
        assert!(is_known || matches!(name, "help" | "version"), "--{name} is unknown");
    }
}

#[test]
fn flags_without_effect_are_ignored_or_rejected_with_a_reason() {
    let (_, settings) = settings(&[
        "--watch-cache",
        "--etcd-healthcheck-timeout=5s",
        "--watch-cache-sizes",
        "pods#100",
        "server",
        "--endpoint-reconciler-type=lease",
    ])
    .unwrap();
    let ignored: Vec<_> = settings.ignored.iter().map(|flag| flag.name).collect();
    assert_eq!(ignored, ["etcd-healthcheck-timeout", "watch-cache-sizes"]);
    for (arguments, reason) in [
        (
            ["--etcd-servers-overrides=/events#http://a:2379"],
            "--etcd-servers-overrides: \"/events#http://a:2379\" is not supported: all resources are in one store",
        ),
        (["--watch-cache=false"], "--watch-cache: \"false\" is not supported: all resources"),
        (
            ["--emulated-version=1.32"],
            "--emulated-version: [emulation version 1.32 is not between [1.33, 1.36.0], minCompatibilityVersion version 1.33",
        ),
        (
            ["--emulation-forward-compatible"],
            "--emulation-forward-compatible: cannot be set to true if the emulation version is the same",
        ),
        (
            ["--coordinated-leadership-lease-duration=5s"],
            "--coordinated-leadership-lease-duration: must be greater than --coordinated-leadership-renew-deadline",
        ),
    ] {
        assert!(refusal(&arguments).starts_with(reason), "{}", refusal(&arguments));
    }
}

#[test]
fn an_external_signer_excludes_keys() {
    const ENDPOINT: &str = "--service-account-signing-endpoint";
    let endpoint = |value: &str| format!("{ENDPOINT}={value}");
    for valid in ["/run/signer.sock", "@signer.example_1"] {
        assert!(settings(&[&endpoint(valid)]).is_ok(), "{valid}");
    }
    for invalid in ["@", "@a..b", "@a/b"] {
        let error = refusal(&[&endpoint(invalid)]);
        assert!(error.contains("when prefixed with @ must be a valid abstract socket name"), "{error}");
    }
    for file in ["--service-account-signing-key-file=/a", "--service-account-key-file=/a"] {
        let error = refusal(&[&endpoint("/s"), file]);
        assert!(error.contains("(They are mutually exclusive)"), "{error}");
    }
}

#[test]
fn tls_settings_are_those_of_upstream() {
    let ciphers = "--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305";
    let (_, settings) =
        settings(&[ciphers, "--tls-min-version=VersionTLS13", "--tls-curve-preferences=29,4588"]).unwrap();
    assert_eq!(
        settings.serving.tls_cipher_suites,
        ["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"]
    );
    assert_eq!(settings.serving.tls_curve_preferences, [29, 4588]);
    for (argument, reason) in [
        ("--tls-min-version=VersionTLS11", "VersionTLS12"),
        ("--tls-min-version=1.2", "VersionTLS12"),
        ("--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_AES_128_CBC_SHA"),
        ("--tls-curve-preferences=25", "25"),
    ] {
        assert!(refusal(&[argument]).contains(reason), "{}", refusal(&[argument]));
    }
}
