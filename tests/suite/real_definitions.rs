//! Definitions and samples of real projects, from a folder in `PORTICO_REAL_CRDS`; without it, the test reports this and
//! passes. The folder contains one folder per project, with `crds` and `samples`: files of one YAML document each.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use portico_tests::tools::is_installed;
use portico_tests::{Portico, wait_until};
use serde_json::Value;

use crate::kubectl::{prints, run};

/// Returns the files of a folder in order; empty if it does not exist.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns the served group versions and resources of a definition.
fn served(definition: &Value) -> Vec<(String, String)> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().unwrap().iter().filter(|version| version["served"] == true);
    let group = spec["group"].as_str().unwrap();
    let named = |version: &Value| {
        let gv = format!("{group}/{}", version["name"].as_str().unwrap());
        (gv, spec["names"]["plural"].as_str().unwrap().to_owned())
    };
    versions.map(named).collect()
}

/// Installs the definitions of a project; returns its group versions and resources when all are served and described.
async fn install(portico: &Portico, project: &Path) -> Vec<(String, String)> {
    let crds = project.join("crds");
    let crds = crds.to_str().unwrap();
    prints(portico, &["apply", "--server-side", "-f", crds]);
    prints(portico, &["wait", "--for=condition=Established", "--timeout=60s", "-f", crds]);
    let list: Value = serde_json::from_str(&prints(portico, &["get", "-o", "json", "-f", crds])).unwrap();
    let one = vec![list.clone()];
    let served: Vec<_> = list["items"].as_array().unwrap_or(&one).iter().flat_map(served).collect();
    let admin = portico.admin();
    for (gv, plural) in &served {
        wait_until("the resource is described", || async {
            let reported = admin.get(&format!("/openapi/v3/apis/{gv}")).await;
            reported.status == 200 && reported.text().contains(&format!("/{plural}/{{name}}\""))
        })
        .await;
    }
    served
}

/// Applies a sample; returns true if it was accepted. It may be refused because of its content, but not by a server error.
fn apply(portico: &Portico, sample: &Path) -> bool {
    let applied =
        run(portico, &["apply", "--server-side", "--force-conflicts", "-f", sample.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&applied.stderr);
    let failed =
        ["Internal error occurred", "connection refused", "EOF"].iter().any(|text| error.contains(text));
    assert!(!failed || error.contains("conversion webhook"), "{}: {error}", sample.display());
    applied.status.success()
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_of_real_projects_are_served_and_explained() {
    let Some(folder) = std::env::var_os("PORTICO_REAL_CRDS") else {
        return portico_tests::report_skip("PORTICO_REAL_CRDS names no folder of definitions");
    };
    if !is_installed("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let projects = files(Path::new(&folder));
    assert!(!projects.is_empty(), "{} contains no projects", folder.display());
    for project in projects {
        let served = install(&portico, &project).await;
        for (gv, plural) in &served {
            let reported = prints(&portico, &["explain", plural, "--api-version", gv, "--recursive"]);
            assert!(reported.contains("FIELDS:"), "{reported}");
        }
        let samples = files(&project.join("samples"));
        let accepted = samples.iter().filter(|sample| apply(&portico, sample)).count();
        for (gv, plural) in &served {
            let group = gv.split('/').next().unwrap_or_default();
            prints(&portico, &["get", &format!("{plural}.{group}"), "--all-namespaces"]);
        }
        let name = project.file_name().unwrap_or_default().to_string_lossy();
        let summary =
            format!("{name}: {} resources, {accepted} of {} samples accepted", served.len(), samples.len());
        // The summary is for the developer; a failure to print it cannot be reported.
        let _ = writeln!(std::io::stderr(), "{summary}");
        assert!(samples.is_empty() || accepted > 0, "{name}: no sample was accepted");
    }
}
