//! Errors in the command line, each with a message of one line, and a hint and the usage line if these help.

use std::fmt;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use portico_kit::url_password::without_secrets;

/// Error in the command line.
#[derive(Debug)]
pub(crate) struct UsageError {
    /// Invalid flag, argument or command; empty if not known.
    pub(crate) argument: String,
    pub(crate) message: String,
    /// Question whether the most similar flag or command was meant.
    pub(crate) hint: Option<String>,
    /// Name of the command, such as `crds check`; empty if none was recognized.
    pub(crate) command: String,
    /// Usage line of the command.
    pub(crate) usage: Option<String>,
}

impl UsageError {
    /// Converts an error of clap. Passwords in URLs are not repeated.
    pub(crate) fn from_clap(error: &Error) -> Self {
        let argument = text(error, ContextKind::InvalidArg)
            .or_else(|| text(error, ContextKind::InvalidSubcommand))
            .unwrap_or_default();
        let is_flag = argument.starts_with('-');
        let name = match is_flag {
            true => argument.split([' ', '=', '[']).next().unwrap_or_default().to_owned(),
            false => argument,
        };
        let usage = error.get(ContextKind::Usage).map(ToString::to_string);
        Self {
            message: message(error, &name),
            hint: suggestion(error).map(|similar| format!("did you mean {similar}?")),
            usage: usage.filter(|_| match error.kind() {
                ErrorKind::MissingRequiredArgument => true,
                ErrorKind::InvalidSubcommand => false,
                _ => !is_flag,
            }),
            command: error
                .get(ContextKind::Usage)
                .map(|usage| command(&usage.to_string()))
                .unwrap_or_default(),
            argument: name,
        }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.argument.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.argument, self.message),
        }
    }
}

fn message(error: &Error, name: &str) -> String {
    let reason = std::error::Error::source(error).map(ToString::to_string).or_else(|| supported(error));
    match (error.kind(), text(error, ContextKind::InvalidValue)) {
        (ErrorKind::UnknownArgument, _) if name.starts_with('-') => "unknown flag".to_owned(),
        (ErrorKind::UnknownArgument, _) => "unexpected argument".to_owned(),
        (ErrorKind::InvalidSubcommand, _) => "unknown command".to_owned(),
        (ErrorKind::MissingRequiredArgument, _) => "required, and not given".to_owned(),
        (ErrorKind::InvalidValue, Some(value)) if value.is_empty() => match reason {
            Some(reason) => format!("a value is required: {reason}"),
            None => "a value is required".to_owned(),
        },
        (_, Some(value)) => {
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("invalid value {:?}{reason}", without_secrets(&value))
        }
        (ErrorKind::ArgumentConflict, None) => match text(error, ContextKind::PriorArg) {
            Some(prior) if !prior.starts_with(name) => format!("cannot be used with {prior}"),
            _ => "given twice".to_owned(),
        },
        (kind, None) => reason.unwrap_or_else(|| kind.to_string()),
    }
}

/// Returns the name of the command in a usage line: `crds check` in `Usage: portico crds check [OPTIONS] <FILE>...`.
fn command(usage: &str) -> String {
    let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    let names: Vec<&str> = usage.split_whitespace().skip(2).take_while(is_name).collect();
    names.join(" ")
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    }
}

fn supported(error: &Error) -> Option<String> {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => {
            Some(format!("must be one of {}", values.join(", ")))
        }
        _ => None,
    }
}

/// Returns the most similar name, which is the last of clap's suggestions.
fn suggestion(error: &Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts.last().cloned(),
        _ => text(error, kind),
    })
}
