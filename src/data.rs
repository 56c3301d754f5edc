//! `portico backup`, `restore`, `migrate` and `doctor`: what is stored, copied, moved and looked after.

mod backup;
mod doctor;
mod failure;
mod migrate;
mod place;
mod remote;
mod restore;
mod serving;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::control_service::unparsed;
use crate::ending::fail_with;
use failure::Failure;

/// The verbs that are ours.
pub(crate) const VERBS: [&str; 4] = ["backup", "restore", "migrate", "doctor"];

/// It did not work; nothing was changed.
const FAILED: u8 = 1;
/// The command line cannot be read.
const USAGE: u8 = 2;

/// Verbs about what is stored.
#[derive(Debug, Parser)]
#[command(name = "portico", about, disable_version_flag = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write the state of one revision into a new file, while it is served or not
    ///
    /// Secrets are in it as in the database: sealed where
    /// they are encrypted at rest. Exit code 0: made, or whole; 1: not.
    Backup(backup::Backup),
    /// Take a backup into service in the place of a database that is not served
    ///
    /// A new epoch begins: watches and continue tokens of before end with 410. A SQLite file that was there is kept beside it. Exit code 0:
    /// restored; 1: not, and nothing was replaced.
    Restore(restore::Restore),
    /// Move a store to another database while it is served
    ///
    /// Revisions, uids and the store's identity stay, watches go on; into an etcd, and out of some, a new epoch begins. At the end the old database takes no writes any more. Exit code 0: moved; 1: not,
    /// and everything is as it was (an etcd that was moved into is marked as not whole).
    Migrate(migrate::Migrate),
    /// Examine the database of a data folder, served or not
    ///
    /// What SQLite says of the file, objects that cannot be read, indexes and counters. Exit code 0: sound; 1: something is wrong; 2: not examined.
    Doctor(doctor::Doctor),
}

/// Runs the verb in these arguments, of which the first is `portico`.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let cli = match with_places(arguments) {
        Ok(cli) => cli,
        Err(ending) => return ending,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail_with(&error.to_string(), USAGE),
    };
    runtime.block_on(async {
        match cli.verb {
            Verb::Backup(verb) => report("backup", backup::run(&verb).await),
            Verb::Restore(verb) => report("restore", restore::run(&verb).await),
            Verb::Migrate(verb) => report("migrate", migrate::run(&verb).await),
            Verb::Doctor(verb) => doctor::run(&verb).await,
        }
    })
}

/// The command line; it names one place at most where one is meant.
fn with_places(arguments: impl Iterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let parsed = Cli::command().try_get_matches_from(arguments).and_then(|matches| {
        let mut cli = Cli::from_arg_matches(&matches)?;
        if let Some((_, matches)) = matches.subcommand() {
            match &mut cli.verb {
                Verb::Backup(verb) => verb.from.place.settle(matches)?,
                Verb::Restore(verb) => verb.to.settle(matches)?,
                Verb::Doctor(verb) => verb.check(matches)?,
                Verb::Migrate(_) => {}
            }
        }
        Ok(cli)
    });
    parsed.map_err(|error| unparsed(error, USAGE))
}

fn report(verb: &str, done: Result<String, Failure>) -> ExitCode {
    match done {
        Ok(text) => crate::ending::print_text(&text),
        Err(error) => fail_with(&format!("{verb}: {error}"), FAILED),
    }
}
