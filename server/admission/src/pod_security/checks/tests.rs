//! Tests of each check: upstream's messages, from the version that introduced the check.

use portico_machinery::Object;

use super::*;

/// Returns the violations of a pod with this spec; `C` in the spec is replaced by the name of a container.
fn violations_of(level: Level, version: Option<u32>, spec: &str) -> String {
    let spec = spec.replace("C:", r#""name":"c","#);
    let pod = Object::from_json(format!(r#"{{"metadata":{{}},"spec":{spec}}}"#).as_bytes()).unwrap();
    join_details(&violations(Standard { level, version }, &Pod::of(pod.cursor())))
}

#[test]
fn the_baseline_denies_access_to_the_host() {
    #[rustfmt::skip]
    let cases: &[(&str, &str)] = &[
        (r#"{"containers":[{C:"image":"i"}]}"#, ""),
        (r#"{"hostPID":true,"hostIPC":true}"#, "host namespaces (hostPID=true, hostIPC=true)"),
        (r#"{"volumes":[{"name":"v","hostPath":{}}]}"#, "hostPath volumes (volume \"v\")"),
        (r#"{"containers":[{C:"ports":[{"hostPort":80},{"hostPort":443}]}]}"#,
            "hostPort (container \"c\" uses hostPorts 443, 80)"),
        (r#"{"containers":[{C:"securityContext":{"capabilities":{"add":["NET_RAW","CHOWN"]}}}]}"#,
            "non-default capabilities (container \"c\" must not include \"NET_RAW\" in securityContext.capabilities.add)"),
        (r#"{"containers":[{C:"securityContext":{"procMount":"Unmasked"}}]}"#,
            "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")"),
        (r#"{"hostUsers":false,"containers":[{C:"securityContext":{"procMount":"Unmasked"}}]}"#, ""),
        (r#"{"securityContext":{"seLinuxOptions":{"type":"x","user":"u"}}}"#,
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"x\"; user may not be set)"),
        (r#"{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}"#,
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")"),
        (r#"{"securityContext":{"sysctls":[{"name":"kernel.msgmax"}]}}"#, "forbidden sysctls (kernel.msgmax)"),
        (r#"{"securityContext":{"appArmorProfile":{"type":"Unconfined"}}}"#,
            "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")"),
        (r#"{"securityContext":{"windowsOptions":{"hostProcess":true}}}"#,
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"),
        (r#"{"containers":[{C:"livenessProbe":{"httpGet":{"host":"h"}}}]}"#,
            "probe or lifecycle host (container \"c\" uses probe or lifecycle host \"h\")"),
        (r#"{"initContainers":[{"name":"a","securityContext":{"privileged":true}}],"containers":[{C:"securityContext":{"privileged":true}}]}"#,
            "privileged (containers \"a\", \"c\" must not set securityContext.privileged=true)"),
    ];
    for (spec, expected) in cases {
        assert_eq!(violations_of(Level::Baseline, None, spec), *expected, "{spec}");
        assert_eq!(violations_of(Level::Privileged, None, spec), "", "{spec}");
    }
}

#[test]
fn restricted_pods_must_declare_each_restriction() {
    let good = r#"{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
        "containers":[{C:"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}"#;
    assert_eq!(violations_of(Level::Restricted, None, good), "");
    let silent = violations_of(Level::Restricted, None, r#"{"containers":[{C:"image":"i"}]}"#);
    assert_eq!(
        silent,
        "allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), \
         runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true), \
         seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\")"
    );
    let path = violations_of(
        Level::Restricted,
        None,
        &good.replacen('{', r#"{"volumes":[{"name":"v","hostPath":{}}],"#, 1),
    );
    assert_eq!(
        path, "restricted volume types (volume \"v\" uses restricted volume type \"hostPath\")",
        "and not as a host path as well"
    );
    let root = violations_of(
        Level::Restricted,
        None,
        &good.replace("\"runAsNonRoot\":true", "\"runAsUser\":0,\"runAsNonRoot\":true"),
    );
    assert_eq!(root, "runAsUser=0 (pod must not set runAsUser=0)");
}

#[test]
fn a_version_applies_only_its_own_checks() {
    let probe = r#"{"containers":[{C:"livenessProbe":{"tcpSocket":{"host":"h"}}}]}"#;
    assert_eq!(violations_of(Level::Baseline, Some(33), probe), "");
    assert_ne!(violations_of(Level::Baseline, Some(34), probe), "");
    assert_ne!(violations_of(Level::Baseline, Some(99), probe), "");
    let sysctl = r#"{"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem"}]}}"#;
    assert_ne!(violations_of(Level::Baseline, Some(31), sysctl), "");
    assert_eq!(violations_of(Level::Baseline, Some(32), sysctl), "");
    let own_users = r#"{"hostUsers":false,"securityContext":{"runAsUser":0}}"#;
    assert!(violations_of(Level::Restricted, Some(34), own_users).contains("runAsUser=0"));
    assert!(!violations_of(Level::Restricted, Some(35), own_users).contains("runAsUser=0"));
}
