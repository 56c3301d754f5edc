//! Server flags on the command line, which are accepted before and after `run`, `server` and `facade`. This module only collects the
//! flags: [`settings::parse`] parses them together with the environment and the configuration file.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::Error;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::settings;

/// Server flags given on the command line, each as `--name=value`.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerFlags(pub(super) Vec<OsString>);

impl Args for ServerFlags {
    fn augment_args(command: Command) -> Command {
        // Building about 240 flags takes time, so only the command in use builds them.
        command.defer(|command| command.args(arguments()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServerFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_on_command_line = |flag: &&str| matches.value_source(flag) == Some(ValueSource::CommandLine);
        let flags =
            matches.ids().map(|id| id.as_str()).filter(|id| id.starts_with("--")).filter(is_on_command_line);
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

/// Returns all server flags. The id of a flag is the flag itself, such as `--data-dir`. Requirements and conflicts between flags are
/// removed, because they are checked once the values of all sources are known.
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
