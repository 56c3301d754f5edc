//! Prints the findings of `portico crds check` as text or JSON.

use std::io::{self, Write};

use portico_proto::apiextensions::finding::Kind;
use portico_proto::apiextensions::{CheckResponse, Finding};
use serde::Serialize;

/// Prints a headline for one definition, then one line per finding.
pub(super) fn text(checked: &CheckResponse) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let known = if checked.installed { "installed" } else { "new" };
    let hit = match checked.objects {
        0 => String::new(),
        objects => format!(", {} of {objects} stored objects affected", checked.hit),
    };
    writeln!(out, "{} ({known}): {} found{hit}", checked.name, checked.findings.len())?;
    for finding in &checked.findings {
        let place = [&finding.version, &finding.object, &finding.field];
        let place: Vec<&str> =
            place.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(" ")) };
        writeln!(out, "  {:<9} {place}{}", word(finding.kind()), finding.text)?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Printed<'a> {
    name: &'a str,
    installed: bool,
    objects: u64,
    hit: u64,
    findings: Vec<PrintedFinding<'a>>,
}

#[derive(Serialize)]
struct PrintedFinding<'a> {
    kind: &'static str,
    version: &'a str,
    object: &'a str,
    field: &'a str,
    text: &'a str,
}

/// Prints the results for all definitions as one JSON list.
pub(super) fn json(all: &[CheckResponse]) -> io::Result<()> {
    let printed: Vec<Printed<'_>> = all.iter().map(printed).collect();
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &printed)?;
    writeln!(out)
}

fn printed(checked: &CheckResponse) -> Printed<'_> {
    Printed {
        name: &checked.name,
        installed: checked.installed,
        objects: checked.objects,
        hit: checked.hit,
        findings: checked.findings.iter().map(printed_finding).collect(),
    }
}

fn printed_finding(finding: &Finding) -> PrintedFinding<'_> {
    PrintedFinding {
        kind: word(finding.kind()),
        version: &finding.version,
        object: &finding.object,
        field: &finding.field,
        text: &finding.text,
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Error => "error",
        Kind::Warning => "warning",
        Kind::Breaking => "breaking",
        Kind::Invalid => "invalid",
        Kind::Lost => "lost",
        Kind::Unspecified => "unknown",
    }
}
