//! `portico backup`, `restore`, `migrate` and `doctor`: copies, moves and examines stored data.

mod backup;
mod doctor;
mod failure;
mod location;
mod migrate;
mod remote;
mod restore;
mod serving;

use std::process::ExitCode;

use clap::Subcommand;

use crate::exit::{fail_with, fail_with_hint, print_text};
use crate::exit_codes;
use failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Write all objects into a backup file, served or not
    ///
    /// The file has the state of one revision. It can be restored into any database. It contains values as the database stores them: encrypted ones stay encrypted. An
    /// interrupted backup continues when you repeat the command.
    ///
    /// Exit codes: 0 written, or the checked file is complete; 1 not; 2 the command line is invalid.
    Backup(backup::Backup),
    /// Restore a backup into a database that is not served
    ///
    /// The restored data begins a new epoch: clients that use watches and continue tokens from before get 410 and list again. A replaced
    /// SQLite file is kept under another name.
    ///
    /// Exit codes: 0 restored; 1 not, and nothing was replaced; 2 the command line is invalid.
    Restore(restore::Restore),
    /// Move all data to another database while it is served
    ///
    /// Revisions, UIDs and the identity of the store do not change and watches continue; a move into etcd, and out of some, begins a new
    /// epoch. At the end the old database refuses writes. If a server has the data folder open, --kubeconfig names the server; by default
    /// DIR/admin.kubeconfig is used. Stop every kube-apiserver before you move its etcd.
    ///
    /// Exit codes: 0 moved; 1 not, and nothing has changed, except that an etcd target is marked as incomplete; 2 the command line is
    /// invalid.
    Migrate(migrate::Migrate),
    /// Examine the SQLite database of a data folder
    ///
    /// The database may be served. Runs the integrity check of SQLite and reports unreadable objects and wrong indexes and counters.
    ///
    /// Exit codes: 0 sound; 1 problems found; 2 not examined.
    Doctor(doctor::Doctor),
}

/// Runs a command.
pub(crate) fn run(verb: &Verb) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let examines = matches!(verb, Verb::Doctor(_));
            let code = if examines { exit_codes::NOT_EXAMINED } else { exit_codes::FAILED };
            return fail_with(&error.to_string(), code);
        }
    };
    runtime.block_on(async {
        match verb {
            Verb::Backup(verb) => report("backup", backup::run(verb).await),
            Verb::Restore(verb) => report("restore", restore::run(verb).await),
            Verb::Migrate(verb) => report("migrate", migrate::run(verb).await),
            Verb::Doctor(verb) => doctor::run(verb).await,
        }
    })
}

fn report(verb: &str, done: Result<String, Failure>) -> ExitCode {
    match done {
        Ok(text) => print_text(&text, exit_codes::FAILED),
        Err(error) => fail_with_hint(&format!("{verb}: {error}"), error.hint(), error.exit_code()),
    }
}
