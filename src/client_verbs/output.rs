//! How answers are printed.

use std::io::{self, Write};

use anstream::AutoStream;
use clap::ValueEnum;
use serde::Serialize;

/// What `-o` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    #[default]
    Table,
    /// For people, with more columns.
    Wide,
    /// JSON, indented.
    Json,
    /// YAML.
    Yaml,
    /// `resource.group/name`, a line each.
    Name,
}

/// Standard output; colours where it is a terminal that wants them (`NO_COLOR`, `CLICOLOR`).
pub(super) fn out() -> AutoStream<io::Stdout> {
    AutoStream::auto(io::stdout())
}

/// Prints lines.
pub(super) fn lines(lines: impl IntoIterator<Item = impl AsRef<str>>) -> io::Result<()> {
    let mut out = out();
    for line in lines {
        writeln!(out, "{}", line.as_ref())?;
    }
    Ok(())
}

/// Prints a document of JSON in this form.
pub(super) fn document(json: &[u8], format: Format) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        Format::Yaml => {
            let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the answer is no JSON");
            out.write_all(&portico_facade::yaml(json).ok_or_else(invalid)?)
        }
        _ => {
            out.write_all(&portico_facade::pretty(json))?;
            writeln!(out)
        }
    }
}

/// Prints what has no form of its own on the wire.
pub(super) fn value<T: Serialize>(value: &T, format: Format) -> io::Result<()> {
    document(&serde_json::to_vec(value)?, format)
}
