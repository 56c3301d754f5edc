//! Files as operators write them, and errors as kube-apiserver 1.36.3 prints them.

use portico_machinery::features::FeatureGates;

use super::*;
use crate::enabled_plugins::EnabledPlugins;

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";

/// Reads a file with this text; the plugins in `enabled` are enabled in addition to the default.
fn read(text: &str, enabled: &[&str]) -> Result<Configuration, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admission.yaml");
    std::fs::write(&path, text).unwrap();
    let events_section = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: [{type: Server, qps: 1, burst: 2}]\n";
    std::fs::write(folder.path().join("events.yaml"), events_section).unwrap();
    let enabled: Vec<String> = enabled.iter().map(|name| (*name).to_owned()).collect();
    let plugins = EnabledPlugins::from_flags(&enabled, &[]).unwrap();
    let read = Configuration::read(Some(&path), &plugins, &FeatureGates::default());
    read.map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), "FOLDER"))
}

/// A file with one section.
fn section(plugin: &str, configuration: &str) -> String {
    format!("{HEAD}plugins: [{{name: {plugin}, configuration: {configuration}}}]\n")
}

fn refusal(text: &str, enabled: &[&str]) -> String {
    let refusal = read(text, enabled).expect_err(text);
    assert!(!refusal.contains('\n'), "{refusal}");
    refusal
}

#[test]
fn a_file_that_is_no_configuration_is_refused() {
    let prefix = "failed to read plugin config: ";
    for (text, error) in [
        ("", "Object 'Kind' is missing in ''"),
        ("plugins: []\n", "Object 'Kind' is missing in 'plugins: []\\n'"),
        (
            "kind: AdmissionConfiguration\n",
            "Object 'apiVersion' is missing in 'kind: AdmissionConfiguration\\n'",
        ),
        (
            "apiVersion: apiserver.config.k8s.io/v1\nkind: Foo\n",
            "no kind \"Foo\" is registered for version \"apiserver.config.k8s.io/v1\"",
        ),
        (
            "apiVersion: apiserver.config.k8s.io/v9\nkind: AdmissionConfiguration\n",
            "no kind \"AdmissionConfiguration\" is registered for version \"apiserver.config.k8s.io/v9\"",
        ),
        (&format!("{HEAD}plugin: []\n"), "strict decoding error: unknown field \"plugin\""),
        (
            &format!("{HEAD}plugins: {{}}\n"),
            "json: cannot unmarshal object into Go struct field AdmissionConfiguration.plugins of type []v1.AdmissionPluginConfiguration",
        ),
        (
            &format!("{HEAD}plugins: [{{name: 3}}]\n"),
            "json: cannot unmarshal number into Go struct field AdmissionPluginConfiguration.plugins.name of type string",
        ),
    ] {
        assert_eq!(refusal(text, &[]), format!("{prefix}{error}"));
    }
    let missing =
        Configuration::read(Some(Path::new("/nosuch")), &EnabledPlugins::default(), &FeatureGates::default());
    assert_eq!(
        missing.unwrap_err().to_string(),
        "failed to read plugin config: unable to read admission control configuration from \"/nosuch\" [open /nosuch: no such file or directory]"
    );
}

#[test]
fn a_section_may_refer_to_another_file() {
    let text = |path: &str| format!("{HEAD}plugins: [{{name: EventRateLimit, path: {path}}}]\n");
    assert!(read(&text("events.yaml"), &["EventRateLimit"]).is_ok());
    assert_eq!(
        refusal(&text("nosuch.yaml"), &["EventRateLimit"]),
        "couldn't open admission plugin configuration FOLDER/nosuch.yaml: no such file or directory"
    );
    // Sections of disabled and unknown plugins are ignored.
    assert!(read(&text("nosuch.yaml"), &[]).is_ok());
    assert!(read(&section("NoSuchPlugin", "{a: b}"), &[]).is_ok());
}

#[test]
fn a_file_in_an_older_format_configures_its_plugin() {
    let text = "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: a=b}\n";
    assert!(read(text, &["PodNodeSelector"]).is_ok());
}

#[test]
fn invalid_sections_are_refused_with_upstreams_messages() {
    let events = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration";
    let pods = "apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration";
    let quotas = "apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration";
    let webhooks = "apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration";
    let tolerations = "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1, kind: Configuration";
    for (plugin, head, rest, error) in [
        ("EventRateLimit", events, "extra: 1", "limits: Invalid value: null: must not be empty"),
        (
            "EventRateLimit",
            events,
            "limits: [{type: Bad, qps: 0, burst: -1, cacheSize: -1}, {type: Namespace, qps: 1, burst: 1, cacheSize: -1}]",
            "[limits[0].type: Unsupported value: \"Bad\": supported values: \"Server\", \"Namespace\", \"User\", \"SourceAndObject\", limits[0].burst: Invalid value: -1: must be positive, limits[0].qps: Invalid value: 0: must be positive, limits[0].cacheSize: Invalid value: -1: must not be negative, limits[1].cacheSize: Invalid value: -1: must not be negative]",
        ),
        (
            "EventRateLimit",
            events,
            "limits: [{type: Server, qps: many, burst: 1}]",
            "json: cannot unmarshal string into Go struct field Limit.limits.qps of type int32",
        ),
        (
            "PodSecurity",
            pods,
            "defaults: {enforce: bad, enforce-version: v2, warn: '', audit: nope}",
            "PodSecurity configuration error: [enforce: must be one of privileged, baseline, restricted, enforce-version: must be \"latest\" or \"v1.x\", audit: must be one of privileged, baseline, restricted]",
        ),
        (
            "PodSecurity",
            pods,
            "exemptions: {usernames: ['', a, a], namespaces: [b, b], runtimeClasses: [c, c]}",
            "PodSecurity invalid: [exemptions.namespaces[1]: Duplicate value: \"b\", exemptions.runtimeClasses[1]: Duplicate value: \"c\", exemptions.usernames[0]: Invalid value: \"\": username must not be empty, exemptions.usernames[2]: Duplicate value: \"a\"]",
        ),
        ("PodSecurity", pods, "default: {}", "strict decoding error: unknown field \"default\""),
        (
            "ResourceQuota",
            quotas,
            "limitedResources: [{apiGroup: x, matchContains: [a]}]",
            "limitedResources[0].resource: Required value",
        ),
        (
            "ResourceQuota",
            quotas,
            "limitedResources: [{resource: pods, foo: 1}]",
            "strict decoding error: unknown field \"limitedResources[0].foo\"",
        ),
        (
            "ValidatingAdmissionWebhook",
            webhooks,
            "kubeConfigFile: rel",
            "kubeConfigFile: Invalid value: \"rel\": must be an absolute file path",
        ),
        (
            "MutatingAdmissionWebhook",
            webhooks,
            "staticManifestsDir: /tmp",
            "staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled",
        ),
        (
            "MutatingAdmissionWebhook",
            webhooks,
            "kubeConfigFile: /nosuch",
            "stat /nosuch: no such file or directory",
        ),
        (
            "PodTolerationRestriction",
            tolerations,
            "default: [{key: a, operator: Bad}, {key: '', operator: Equal, effect: X}]",
            "invalid config: [podtolerationrestriction.default[0].operator: Unsupported value: \"Bad\": supported values: \"Equal\", \"Exists\" podtolerationrestriction.default[1].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\" podtolerationrestriction.default[1].effect: Unsupported value: \"X\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"]",
        ),
    ] {
        let text = section(plugin, &format!("{{{head}, {rest}}}"));
        let expected = format!("couldn't init admission plugin {plugin:?}: {error}");
        assert_eq!(refusal(&text, &[plugin]), expected);
    }
}
