//! Prints the findings of `portico config check` as text or JSON.

use std::io::{self, Write};

use portico_server::{ManifestsFinding, ManifestsReport};
use serde::Serialize;

/// Prints one line per finding, which begins with `FILE:LINE` for editors and CI jobs, then a summary.
pub(super) fn text(report: &ManifestsReport) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for finding in &report.findings {
        let ManifestsFinding { file, line, document, object, message, .. } = finding;
        let item = finding.item.map_or_else(String::new, |item| format!(", item {item}"));
        let object = if object.is_empty() { String::new() } else { format!(" {object}:") };
        writeln!(out, "{file}:{line}: {}: document {document}{item}:{object} {message}", severity(finding))?;
    }
    let errors = report.findings.iter().filter(|finding| finding.is_error).count();
    let (files, documents, warnings) = (report.files, report.documents, report.findings.len() - errors);
    let unchecked = match report.unchecked {
        0 => String::new(),
        unchecked => format!("; {unchecked} not checked (stored by other API servers)"),
    };
    writeln!(out, "{documents} documents in {files} files: {errors} errors, {warnings} warnings{unchecked}")
}

#[derive(Serialize)]
struct ReportOutput<'a> {
    files: usize,
    documents: usize,
    unchecked: usize,
    findings: Vec<FindingOutput<'a>>,
}

#[derive(Serialize)]
struct FindingOutput<'a> {
    severity: &'static str,
    file: &'a str,
    line: usize,
    document: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<usize>,
    object: &'a str,
    message: &'a str,
}

/// Prints the report as one JSON document.
pub(super) fn json(report: &ManifestsReport) -> io::Result<()> {
    let findings = report.findings.iter().map(finding_output).collect();
    let (files, documents, unchecked) = (report.files, report.documents, report.unchecked);
    let printed = ReportOutput { files, documents, unchecked, findings };
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &printed)?;
    writeln!(out)
}

fn finding_output(finding: &ManifestsFinding) -> FindingOutput<'_> {
    let ManifestsFinding { file, line, document, item, object, message, .. } = finding;
    let (line, document, item) = (*line, *document, *item);
    FindingOutput { severity: severity(finding), file, line, document, item, object, message }
}

fn severity(finding: &ManifestsFinding) -> &'static str {
    if finding.is_error { "error" } else { "warning" }
}
