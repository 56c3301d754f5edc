//! Audit log: lines in a file, or on standard output.

use std::io;
use std::path::Path;

use bytes::Bytes;
use portico_kit::line_writer::LineWriter;
use portico_kit::rotating_file::RotatingFile;

use crate::metrics::AuditMetrics;
use crate::settings::AuditLogSettings;

pub(super) const PLUGIN: &str = "log";
const STANDARD_OUTPUT: &str = "-";

/// Destination that writes lines to the audit log.
pub(super) struct LogDestination {
    writer: LineWriter,
    metrics: AuditMetrics,
}

impl LogDestination {
    pub(super) fn open(settings: &AuditLogSettings, metrics: AuditMetrics) -> io::Result<Self> {
        let errors = metrics.clone();
        let on_error =
            Box::new(move |error: &io::Error, lines| errors.count_lost(PLUGIN, lines, &error.to_string()));
        let writer = if settings.path == Path::new(STANDARD_OUTPUT) {
            LineWriter::start("audit-log", io::stdout(), on_error)
        } else {
            let file = RotatingFile::open(&settings.path, settings.rotation.clone())?;
            LineWriter::start("audit-log", file, on_error)
        };
        Ok(Self { writer: writer?, metrics })
    }

    /// Writes lines. Returns false if one could not be written; without `wait`, write errors are only counted.
    pub(super) async fn write(&self, lines: Vec<Bytes>, wait: bool) -> bool {
        let mut written = true;
        for line in lines {
            if wait {
                written &= self.writer.write(line).await;
            } else if !self.writer.queue(line).await {
                self.metrics.count_lost(PLUGIN, 1, "the log is closed");
                written = false;
            }
        }
        written
    }

    /// Writes a line if that needs no waiting. Returns false if it could not be written, `None` if it has to wait.
    pub(super) fn try_write(&self, line: &[u8]) -> Option<bool> {
        self.writer.try_write(line)
    }

    pub(super) async fn close(&self) {
        self.writer.close().await;
    }
}
