//! `portico backup`, `restore`, `migrate` and `doctor`: copy, restore, move and examine stored data.

mod backup;
mod doctor;
mod etcd_servers;
mod failure;
mod location;
mod migrate;
mod remote;
mod restore;

use std::process::ExitCode;

use clap::Subcommand;

use crate::exit::{fail_with, fail_with_hint, print_text};
use crate::exit_codes;
use failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Write all objects into a backup file, with or without a running server
    ///
    /// The file contains the state of one revision and can be restored into any database. Values that are encrypted in the database stay
    /// encrypted. An interrupted backup continues when you repeat the command.
    ///
    /// Exit codes: 0 written, or the checked file is complete; 1 not written, or incomplete; 2 the command line is invalid.
    Backup(backup::Backup),
    /// Restore a backup into a database that no server uses
    ///
    /// The restored data begins a new epoch: clients with earlier watches or continue tokens get status 410 and list again. A replaced
    /// SQLite file is kept under another name.
    ///
    /// Exit codes: 0 restored; 1 not restored, and nothing was replaced; 2 the command line is invalid.
    Restore(restore::Restore),
    /// Move all data to another database while the server runs
    ///
    /// Revisions, UIDs and the identity of the store do not change, and watches continue. Moves into etcd, and some moves out of etcd,
    /// begin a new epoch instead. At the end the old database refuses writes. If a server has the data folder open, --kubeconfig selects
    /// this server; by default, DIR/admin.kubeconfig is used. Stop every kube-apiserver before you move its etcd.
    ///
    /// Exit codes: 0 moved; 1 not moved, and nothing has changed, except that an etcd target is marked as incomplete; 2 the command line
    /// is invalid.
    Migrate(migrate::Migrate),
    /// Examine the SQLite database of a data folder
    ///
    /// A server may use the database at the same time. Runs SQLite's integrity check, and reports unreadable objects, and wrong indexes
    /// and counters.
    ///
    /// Exit codes: 0 the database is sound; 1 problems found; 2 not examined.
    Doctor(doctor::Doctor),
}

/// Runs a data command and returns its exit code.
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

fn report(verb: &str, result: Result<String, Failure>) -> ExitCode {
    match result {
        Ok(text) => print_text(&text, exit_codes::FAILED),
        Err(error) => fail_with_hint(&format!("{verb}: {error}"), error.hint(), error.exit_code()),
    }
}
