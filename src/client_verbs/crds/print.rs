//! Prints the findings of `portico crds check` as text or JSON.

use std::io::{self, Write};

use portico_proto::apiextensions::finding::Kind;
use portico_proto::apiextensions::{CheckResponse, Finding};
use serde::Serialize;

/// Prints a headline for one definition, then one line per finding.
pub(super) fn text(checked: &CheckResponse) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let status = if checked.installed { "installed" } else { "new" };
    let affected = match checked.objects {
        0 => String::new(),
        objects => format!(", {} of {objects} stored objects affected", checked.hit),
    };
    writeln!(out, "{} ({status}): {} found{affected}", checked.name, checked.findings.len())?;
    for finding in &checked.findings {
        let location = [&finding.version, &finding.object, &finding.field];
        let location: Vec<&str> =
            location.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let location = if location.is_empty() { String::new() } else { format!("{}: ", location.join(" ")) };
        writeln!(out, "  {:<9} {location}{}", kind_name(finding.kind()), finding.text)?;
    }
    Ok(())
}

#[derive(Serialize)]
struct CheckOutput<'a> {
    name: &'a str,
    installed: bool,
    objects: u64,
    hit: u64,
    findings: Vec<FindingOutput<'a>>,
}

#[derive(Serialize)]
struct FindingOutput<'a> {
    kind: &'static str,
    version: &'a str,
    object: &'a str,
    field: &'a str,
    text: &'a str,
}

/// Prints the results for all definitions as one JSON list.
pub(super) fn json(all: &[CheckResponse]) -> io::Result<()> {
    let printed: Vec<CheckOutput<'_>> = all.iter().map(check_output).collect();
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &printed)?;
    writeln!(out)
}

fn check_output(response: &CheckResponse) -> CheckOutput<'_> {
    CheckOutput {
        name: &response.name,
        installed: response.installed,
        objects: response.objects,
        hit: response.hit,
        findings: response.findings.iter().map(finding_output).collect(),
    }
}

fn finding_output(finding: &Finding) -> FindingOutput<'_> {
    FindingOutput {
        kind: kind_name(finding.kind()),
        version: &finding.version,
        object: &finding.object,
        field: &finding.field,
        text: &finding.text,
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Error => "error",
        Kind::Warning => "warning",
        Kind::Breaking => "breaking",
        Kind::Invalid => "invalid",
        Kind::Lost => "lost",
        Kind::Unspecified => "unknown",
    }
}
