//! Output formats.

use std::io::{self, Write};

use anstream::AutoStream;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use portico_machinery::Object;
use serde::Serialize;

/// Values of `-o`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Table
    #[default]
    Table,
    /// Table with more columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// `resource.group/name`, one per line
    Name,
}

impl Format {
    /// Parser for output without names.
    pub(super) fn without_names() -> impl TypedValueParser<Value = Self> {
        let known = Self::value_variants().iter().filter(|format| **format != Self::Name);
        PossibleValuesParser::new(known.filter_map(ValueEnum::to_possible_value))
            .map(|text| Self::from_str(&text, true).unwrap_or_default())
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct Printing {
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    pub(super) output: Format,
    /// Include metadata.managedFields in JSON and YAML
    #[arg(long)]
    show_managed_fields: bool,
}

impl Printing {
    /// True for JSON and YAML.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.output, Format::Json | Format::Yaml)
    }

    /// Prints an object as JSON or YAML.
    pub(super) fn object(&self, mut object: Object) -> io::Result<()> {
        if !self.show_managed_fields {
            object.remove(&["metadata", "managedFields"]);
            object.edit_each(&["items"], |item| drop(item.remove(&["metadata", "managedFields"])));
        }
        document(&object.to_json(), self.output)
    }
}

/// Standard output, with colors on a terminal (`NO_COLOR`, `CLICOLOR`).
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

/// Prints JSON in this format.
pub(super) fn document(json: &[u8], format: Format) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        Format::Yaml => {
            let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the response is not JSON");
            out.write_all(&portico_facade::yaml(json).ok_or_else(invalid)?)
        }
        _ => {
            out.write_all(&portico_facade::pretty(json))?;
            writeln!(out)
        }
    }
}

/// Prints a serializable value.
pub(super) fn value<T: Serialize>(value: &T, format: Format) -> io::Result<()> {
    document(&serde_json::to_vec(value)?, format)
}
