//! `portico backup`, `portico restore` and `portico doctor`: a data folder, looked after without a server.

mod doctor;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use portico_server::data::{self, BackupError, DEFAULT_REVISION_BUMP};

use crate::client_verb::parse;
use crate::ending::fail_with;

/// The verbs that are ours.
pub(crate) const VERBS: [&str; 3] = ["backup", "restore", "doctor"];

/// It did not work; nothing was changed.
const FAILED: u8 = 1;
/// The command line cannot be read.
const USAGE: u8 = 2;

/// Verbs about a data folder.
#[derive(Debug, Parser)]
#[command(name = "portico", about, disable_version_flag = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Copy the database into a new file while it is served, or while it is not. The copy is the state of one revision, and
    /// holds Secrets as the database does: sealed where they are encrypted at rest. Exit code 0: copied; 1: not.
    Backup(Backup),
    /// Take a copy into service in the place of the database of a data folder that is not served. A new epoch begins:
    /// watches and continue tokens of before end with 410. The database that was there is kept beside it. Exit code 0:
    /// restored; 1: not, and nothing was replaced.
    Restore(Restore),
    /// Examine the database of a data folder, served or not: what SQLite says of the file, objects that cannot be read,
    /// indexes and counters. Exit code 0: sound; 1: something is wrong; 2: not examined.
    Doctor(doctor::Doctor),
}

#[derive(Debug, clap::Args)]
struct Backup {
    /// The file to make.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The folder of the database.
    #[arg(long, value_name = "DIR", default_value = "./portico-data", env = "PORTICO_DATA_DIR")]
    data_dir: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Restore {
    /// What to restore; may be the database itself, that is to go on as it is.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The folder of the database.
    #[arg(long, value_name = "DIR", default_value = "./portico-data", env = "PORTICO_DATA_DIR")]
    data_dir: PathBuf,
    /// How far resource versions are moved past the last one that is known: further than writes went on after the backup.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_REVISION_BUMP, value_parser = clap::value_parser!(i64).range(1..=MAX_BUMP))]
    bump_revision: i64,
}

/// A thousand times the default, and far from where resource versions end (2^63).
const MAX_BUMP: i64 = 1_000 * DEFAULT_REVISION_BUMP;

/// Runs the verb in these arguments, of which the first is `portico`.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let cli: Cli = match parse(arguments, USAGE) {
        Ok(cli) => cli,
        Err(ending) => return ending,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail_with(&error.to_string(), USAGE),
    };
    runtime.block_on(async {
        match cli.verb {
            Verb::Backup(verb) => report("backup", backup(&verb).await),
            Verb::Restore(verb) => report("restore", restore(&verb).await),
            Verb::Doctor(verb) => doctor::run(&verb).await,
        }
    })
}

fn report(verb: &str, done: Result<String, BackupError>) -> ExitCode {
    match done {
        Ok(text) => crate::ending::print_text(&text),
        Err(error) => fail_with(&format!("{verb}: {error}"), FAILED),
    }
}

async fn backup(verb: &Backup) -> Result<String, BackupError> {
    let copied = data::backup(&data::database(&verb.data_dir), &verb.file).await?;
    let (file, data::BackedUp { store_id, epoch, revision, bytes }) = (verb.file.display(), copied);
    Ok(format!("{file}: store {store_id}, epoch {epoch}, revision {revision}, {bytes} bytes"))
}

async fn restore(verb: &Restore) -> Result<String, BackupError> {
    let database = data::database(&verb.data_dir);
    let restored = data::restore(&verb.file, &database, verb.bump_revision).await?;
    let data::Restored { store_id, epoch, revision, replaced } = restored;
    let mut text = format!("{}: store {store_id}, epoch {epoch}, revision {revision}", database.display());
    if let Some(replaced) = replaced {
        text.push_str(&format!("\nthe database that was there before is {}", replaced.display()));
    }
    Ok(text)
}
