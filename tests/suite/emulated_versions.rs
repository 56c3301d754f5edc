//! `--emulated-version`: the APIs, gates and fields of earlier releases, against the answers of a real kube-apiserver 1.36.3.

use std::collections::BTreeSet;

use portico_tests::http::Http;
use portico_tests::{Launch, eventually};
use serde_json::{Value, json};

/// Discovery and `/version` of kube-apiserver 1.36.3 by `--emulated-version`: `served` by default, `all` with `api/all=true`.
const RECORDED: &str = include_str!("recorded/emulated_versions.json");
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const RELEASES: [&str; 4] = ["1.36", "1.35", "1.34", "1.33"];

/// Returns `group/version/resource` of everything that is served.
async fn served(http: &Http) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in ["/api", "/apis"] {
        let discovery = http.get_as(path, DISCOVERY).await.json();
        for group in discovery["items"].as_array().unwrap() {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            for version in group["versions"].as_array().unwrap() {
                let at = format!("{name}/{}", version["version"].as_str().unwrap());
                names.extend(
                    resources(version).into_iter().map(|r| format!("{}/{r}", at.trim_start_matches('/'))),
                );
            }
        }
    }
    names
}

fn resources(version: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for resource in version["resources"].as_array().unwrap() {
        let name = resource["resource"].as_str().unwrap();
        names.push(name.to_owned());
        for sub in resource["subresources"].as_array().into_iter().flatten() {
            names.push(format!("{name}/{}", sub["subresource"].as_str().unwrap()));
        }
    }
    names
}

fn recorded(release: &Value) -> BTreeSet<String> {
    let versions = release.as_object().unwrap().iter();
    let names = versions.flat_map(|(gv, names)| {
        let names = names.as_str().unwrap().split(' ');
        names.filter(|name| !name.is_empty()).map(move |name| format!("{gv}/{name}"))
    });
    names.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_emulated_release_serves_its_apis_and_version() {
    let all: Value = serde_json::from_str(RECORDED).unwrap();
    for release in RELEASES {
        let portico = Launch::new().arg(&format!("--emulated-version=kube={release}")).start().await;
        let (admin, want) = (portico.admin(), &all[release]);
        let differ: Vec<String> =
            served(&admin).await.symmetric_difference(&recorded(&want["served"])).cloned().collect();
        assert_eq!(differ, Vec::<String>::new(), "{release}");
        let version = admin.get("/version").await.json();
        for (field, value) in want["version"].as_object().unwrap() {
            assert_eq!(&version[field], value, "{release} {field}");
        }
        let metrics = admin.get("/metrics").await.text();
        let row = metrics.lines().find(|line| line.starts_with("version_info{")).unwrap();
        assert!(
            row.contains(&format!("emulation=\"{release}\"")) && row.contains("binary=\"1.36.3\""),
            "{row}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn apis_off_by_default_depend_on_the_release() {
    let recorded_of: Value = serde_json::from_str(RECORDED).unwrap();
    let everything = ["--runtime-config", "api/all=true"];
    let mut here = BTreeSet::new();
    for release in RELEASES {
        let launch = Launch::new().arg(&format!("--emulated-version={release}")).args(&everything);
        let portico = launch.start().await;
        let now = served(&portico.admin()).await;
        if release == "1.36" {
            here.clone_from(&now);
        }
        let latest = recorded(&recorded_of["1.36"]["all"]);
        // Kinds that only one of both servers has are ignored.
        let both: BTreeSet<&String> = here.intersection(&latest).collect();
        let want = recorded(&recorded_of[release]["all"]);
        let differ: Vec<&String> =
            both.into_iter().filter(|name| now.contains(*name) != want.contains(*name)).collect();
        assert_eq!(differ, Vec::<&String>::new(), "{release}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_gates_that_a_release_had_off_are_dropped_unless_the_gate_is_turned_on() {
    let pod = json!({
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"hostnameOverride": "other", "containers": [{"name": "c", "image": "i"}]}
    });
    let rows: [(&[&str], bool); 3] = [
        (&["--emulated-version=1.36"], true),
        (&["--emulated-version=1.34"], false),
        (&["--emulated-version=1.34", "--feature-gates=HostnameOverride=true"], true),
    ];
    for (flags, is_stored) in rows {
        let off = ["--disable-admission-plugins=ServiceAccount"];
        let portico = Launch::new().args(flags).args(&off).start().await;
        let created = portico.admin().post("/api/v1/namespaces/default/pods", &pod).await;
        assert_eq!(created.status, 201, "{}", created.text());
        assert_eq!(created.json()["spec"]["hostnameOverride"].is_string(), is_stored, "{flags:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_separate_facade_shows_the_release_of_its_control_service() {
    let server = Launch::server().arg("--emulated-version=1.34").start().await;
    let facade = Launch::facade(&server).start().await;
    eventually("the facade shows the emulated release", || async {
        let version = facade.admin().get("/version").await.json();
        let shown = [&version["emulationMinor"], &version["minCompatibilityMinor"], &version["minor"]];
        if shown == ["34", "33", "36"] { Ok(()) } else { Err(version.to_string()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apis_that_a_release_lacks_cannot_be_enabled() {
    let rows: [(&[&str], &str); 4] = [
        (&["--emulated-version=1.32"], "emulation version 1.32 is not between [1.33, 1.36.0]"),
        (
            &["--emulated-version=1.34", "--feature-gates=AtomicFIFO=true"],
            "cannot set feature gate AtomicFIFO to true, feature is PreAlpha at emulated version 1.34, min compatibility version 1.33",
        ),
        (
            &["--emulated-version=1.33", "--runtime-config=resource.k8s.io/v1=true"],
            "cannot enable version resource.k8s.io/v1 in runtime-config because all the resources have been introduced after the current version 1.33",
        ),
        (
            &["--runtime-config-emulation-forward-compatible"],
            "cannot be set to true if the emulation version is the same as the binary version",
        ),
    ];
    for (flags, want) in rows {
        let (code, _, errors) = Launch::new().args(flags).run().await;
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(want), "{errors}");
    }
}
