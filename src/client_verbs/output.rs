//! How answers are printed.

use std::io::{self, Write};

use anstream::AutoStream;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use portico_machinery::Object;
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

impl Format {
    /// What `-o` takes where nothing is printed that has a name.
    pub(super) fn without_names() -> impl TypedValueParser<Value = Self> {
        let known = Self::value_variants().iter().filter(|format| **format != Self::Name);
        PossibleValuesParser::new(known.filter_map(ValueEnum::to_possible_value))
            .map(|text| Self::from_str(&text, true).unwrap_or_default())
    }
}

/// How objects are printed.
#[derive(Debug, clap::Args)]
pub(super) struct Printing {
    /// How objects are printed.
    #[arg(long, short, value_enum, default_value_t)]
    pub(super) output: Format,
    /// With -o json and -o yaml: who owns which fields, too.
    #[arg(long)]
    show_managed_fields: bool,
}

impl Printing {
    /// Whether objects are printed whole.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.output, Format::Json | Format::Yaml)
    }

    /// Prints an object whole.
    pub(super) fn object(&self, mut object: Object) -> io::Result<()> {
        if !self.show_managed_fields {
            object.remove(&["metadata", "managedFields"]);
            object.edit_each(&["items"], |item| drop(item.remove(&["metadata", "managedFields"])));
        }
        document(&object.to_json(), self.output)
    }
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
