//! Source of a setting's value: flag, environment variable or file.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Returns the source of a setting's value, or `None` if the value is the default. Flags before and after the command, such as
/// `server`, are equivalent.
pub(super) fn source(matches: &ArgMatches, id: &str) -> Option<ValueSource> {
    let own_source = matches.value_source(id);
    let subcommand_source = matches.subcommand().and_then(|(_, matches)| matches.value_source(id));
    [own_source, subcommand_source].into_iter().flatten().find(|source| *source != ValueSource::DefaultValue)
}
