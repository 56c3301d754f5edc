//! Output of client commands: formats and printing.

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
    /// Returns a parser that accepts every format except `name`.
    pub(super) fn without_names() -> impl TypedValueParser<Value = Self> {
        let formats = Self::value_variants().iter().filter(|format| **format != Self::Name);
        PossibleValuesParser::new(formats.filter_map(ValueEnum::to_possible_value))
            .map(|text| Self::from_str(&text, true).unwrap_or_default())
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct OutputArgs {
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    pub(super) output: Format,
    /// Include metadata.managedFields in JSON and YAML output
    #[arg(long)]
    show_managed_fields: bool,
}

impl OutputArgs {
    /// Returns true if complete objects are printed, which is the case for JSON and YAML.
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

/// Returns standard output, with colors on a terminal unless `NO_COLOR` or `CLICOLOR` disables them.
pub(super) fn out() -> AutoStream<io::Stdout> {
    AutoStream::auto(io::stdout())
}

/// Prints lines to standard output.
pub(super) fn lines(lines: impl IntoIterator<Item = impl AsRef<str>>) -> io::Result<()> {
    let mut out = out();
    for line in lines {
        writeln!(out, "{}", line.as_ref())?;
    }
    Ok(())
}

/// Prints a JSON document as YAML, or as indented JSON for every other format.
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

/// Serializes a value and prints it with [`document`].
pub(super) fn value<T: Serialize>(value: &T, format: Format) -> io::Result<()> {
    document(&serde_json::to_vec(value)?, format)
}
