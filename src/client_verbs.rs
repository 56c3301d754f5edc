//! `portico` as a client of a control service: what is served, what may be reached and why not, for people and for scripts.

mod apply;
mod completion;
mod explain;
mod facade;
mod failure;
mod get;
mod history;
mod live;
mod namespace;
mod outcome;
mod output;
mod route;
mod routes;
mod served_table;
mod stages;
mod table;
mod tree;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::control_service::parse;
use crate::ending::fail_with;
use completion::{Completion, Man};
use outcome::Ending;

/// The verbs that are ours.
pub(crate) const VERBS: [&str; 13] = [
    "get",
    "apply",
    "explain",
    "route",
    "routes",
    "watch",
    "tree",
    "history",
    "diff",
    "rollback",
    "undelete",
    "completion",
    "man",
];

/// What was asked about is not as it should be.
const NOT_SO: u8 = 1;
/// It could not be done.
const FAILED: u8 = 2;

/// Verbs of the client.
#[derive(Debug, Parser)]
#[command(name = "portico", about, disable_version_flag = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Get(get::Get),
    Apply(apply::Apply),
    Explain(explain::Explain),
    Route(route::Route),
    Routes(routes::Routes),
    Watch(watch::Watch),
    Tree(tree::Tree),
    History(history::History),
    Diff(history::Diff),
    Rollback(history::Rollback),
    Undelete(history::Undelete),
    Completion(Completion),
    Man(Man),
}

/// The verbs as commands, for help, completions and manual pages.
pub(crate) fn commands() -> Vec<clap::Command> {
    Cli::command().get_subcommands().cloned().collect()
}

/// Runs the verb in these arguments, of which the first is `portico`. The whole command line is `portico`.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>, portico: clap::Command) -> ExitCode {
    let cli: Cli = match parse(arguments, FAILED) {
        Ok(cli) => cli,
        Err(ending) => return ending,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail_with(&error.to_string(), FAILED),
    };
    let (name, done) = runtime.block_on(async {
        match cli.verb {
            Verb::Get(verb) => ("get", get::run(&verb).await),
            Verb::Apply(verb) => ("apply", apply::run(&verb).await),
            Verb::Explain(verb) => ("explain", explain::run(&verb).await),
            Verb::Route(verb) => ("route", route::run(&verb).await),
            Verb::Routes(verb) => ("routes", routes::run(&verb).await),
            Verb::Watch(verb) => ("watch", watch::run(&verb).await),
            Verb::Tree(verb) => ("tree", tree::run(&verb).await),
            Verb::History(verb) => ("history", history::run(&verb).await),
            Verb::Diff(verb) => ("diff", history::diff(&verb).await),
            Verb::Rollback(verb) => ("rollback", history::rollback(&verb).await),
            Verb::Undelete(verb) => ("undelete", history::undelete(&verb).await),
            Verb::Completion(verb) => ("completion", verb.print(portico)),
            Verb::Man(verb) => ("man", verb.print(portico)),
        }
    });
    match done {
        Ok(Ending::Well) => ExitCode::SUCCESS,
        Ok(Ending::NotSo) => ExitCode::from(NOT_SO),
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => fail_with(&format!("{name}: {failure}"), FAILED),
    }
}
