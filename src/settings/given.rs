//! Which settings were said, by a flag, a variable or the file, and not left at their default.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Where the value of a setting comes from; none if it is the default. A flag behind the role counts as one before it.
pub(super) fn source(matches: &ArgMatches, id: &str) -> Option<ValueSource> {
    let own = matches.value_source(id);
    let below = matches.subcommand().and_then(|(_, matches)| matches.value_source(id));
    [own, below].into_iter().flatten().find(|source| *source != ValueSource::DefaultValue)
}
