//! Source of a setting's value: flag, environment variable or file.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Source of a setting's value; `None` if it has its default. Flags after the role count as flags before it.
pub(super) fn source(matches: &ArgMatches, id: &str) -> Option<ValueSource> {
    let own = matches.value_source(id);
    let below = matches.subcommand().and_then(|(_, matches)| matches.value_source(id));
    [own, below].into_iter().flatten().find(|source| *source != ValueSource::DefaultValue)
}
