//! Definitions and samples of real projects, from a folder that `PORTICO_REAL_CRDS` names; without it the test says so and
//! passes. The folder holds one folder per project, with `crds` and `samples` in it: files of one YAML document each.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use portico_tests::tools::there_is;
use portico_tests::{Portico, until};
use serde_json::Value;

use crate::kubectl::{prints, run};

/// The files of a folder, in order; none when it is not there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// What a definition serves: each group version with the resource.
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
async fn installed(portico: &Portico, project: &Path) -> Vec<(String, String)> {
    let crds = project.join("crds");
    let crds = crds.to_str().unwrap();
    prints(portico, &["apply", "--server-side", "-f", crds]);
    prints(portico, &["wait", "--for=condition=Established", "--timeout=60s", "-f", crds]);
    let list: Value = serde_json::from_str(&prints(portico, &["get", "-o", "json", "-f", crds])).unwrap();
    let one = vec![list.clone()];
    let served: Vec<_> = list["items"].as_array().unwrap_or(&one).iter().flat_map(served).collect();
    let admin = portico.admin();
    for (gv, plural) in &served {
        until("the resource to be described", || async {
            let reported = admin.get(&format!("/openapi/v3/apis/{gv}")).await;
            reported.status == 200 && reported.text().contains(&format!("/{plural}/{{name}}\""))
        })
        .await;
    }
    served
}

/// Applies a sample; returns whether it was taken. It may be refused for what is in it, but not for a failure of the server.
fn applied(portico: &Portico, sample: &Path) -> bool {
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
        return portico_tests::skipped("PORTICO_REAL_CRDS names no folder of definitions");
    };
    if !there_is("kubectl") {
        return;
    }
    let portico = Portico::start().await;
    let projects = files(Path::new(&folder));
    assert!(!projects.is_empty(), "{} holds no projects", folder.display());
    for project in projects {
        let served = installed(&portico, &project).await;
        for (gv, plural) in &served {
            let reported = prints(&portico, &["explain", plural, "--api-version", gv, "--recursive"]);
            assert!(reported.contains("FIELDS:"), "{reported}");
        }
        let samples = files(&project.join("samples"));
        let taken = samples.iter().filter(|sample| applied(&portico, sample)).count();
        for (gv, plural) in &served {
            let group = gv.split('/').next().unwrap_or_default();
            prints(&portico, &["get", &format!("{plural}.{group}"), "--all-namespaces"]);
        }
        let name = project.file_name().unwrap_or_default().to_string_lossy();
        let summary =
            format!("{name}: {} resources, {taken} of {} samples taken", served.len(), samples.len());
        // What was found is for whoever runs it; a failure to print it cannot be reported.
        let _ = writeln!(std::io::stderr(), "{summary}");
        assert!(samples.is_empty() || taken > 0, "{name}: no sample was taken");
    }
}
