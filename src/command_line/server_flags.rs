//! The flags of a server on the command line. They are accepted before and behind `run`, `server` and `facade`, and collected:
//! [`settings::parse`] reads them together with the environment and the file.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::Error;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::settings;

/// Flags of a server, as `--name=value`.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerFlags(pub(super) Vec<OsString>);

impl Args for ServerFlags {
    fn augment_args(command: Command) -> Command {
        // There are about 240: they are built for the command in use only.
        command.defer(|command| command.args(arguments()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServerFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |flag: &&str| matches.value_source(flag) == Some(ValueSource::CommandLine);
        let flags = matches.ids().map(|id| id.as_str()).filter(|id| id.starts_with("--")).filter(given);
        Ok(Self(flags.flat_map(|flag| with_values(flag, matches)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn with_values<'m>(flag: &'m str, matches: &'m ArgMatches) -> impl Iterator<Item = OsString> + 'm {
    matches.get_raw(flag).into_iter().flatten().map(move |value| {
        let mut argument = OsString::from(flag);
        argument.push("=");
        argument.push(value);
        argument
    })
}

/// All flags; the id of each is the flag itself. Which flags require or exclude each other is checked once the values of all sources
/// are known.
pub(super) fn arguments() -> Vec<Arg> {
    let command = settings::flag_command();
    let flags = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
    flags
        .map(|(long, arg)| {
            let arg = arg.clone().id(format!("--{long}"));
            arg.requires(Resettable::Reset).conflicts_with(Resettable::Reset)
        })
        .collect()
}
