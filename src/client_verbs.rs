//! Client commands, such as `get`, `routes` and `apply`, which call a control service or a facade.

mod apply;
mod crds;
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
mod secrets;
mod served_table;
mod stages;
mod table;
mod tree;
mod watch;

use std::process::ExitCode;

use clap::Subcommand;

use crate::exit::{fail_with, fail_with_hint};
use crate::exit_codes;
use outcome::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Get(get::Get),
    Explain(explain::Explain),
    Routes(routes::Routes),
    Route(route::Route),
    Watch(watch::Watch),
    Tree(tree::Tree),
    History(history::History),
    Diff(history::Diff),
    Apply(apply::Apply),
    Rollback(history::Rollback),
    Undelete(history::Undelete),
    /// Encrypt stored objects again with the current key
    #[command(subcommand)]
    Secrets(secrets::Verb),
    /// Check what CustomResourceDefinitions would break
    #[command(subcommand)]
    Crds(crds::Verb),
}

/// Returns the exit code for an output pipe that the reader closed. Commands that change objects, or whose exit code is
/// a verdict, did not complete.
fn after_closed_pipe(verb: &Verb) -> u8 {
    match verb {
        Verb::Get(_) | Verb::Routes(_) | Verb::Tree(_) | Verb::History(_) => exit_codes::SUCCESS,
        _ => exit_codes::NOT_EXAMINED,
    }
}

/// Runs a client command and returns its exit code.
pub(crate) fn run(verb: &Verb) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail_with(&error.to_string(), exit_codes::NOT_EXAMINED),
    };
    let (name, result) = runtime.block_on(async {
        match verb {
            Verb::Get(verb) => ("get", get::run(verb).await),
            Verb::Explain(verb) => ("explain", explain::run(verb).await),
            Verb::Routes(verb) => ("routes", routes::run(verb).await),
            Verb::Route(verb) => ("route try", route::run(verb).await),
            Verb::Watch(verb) => ("watch", watch::run(verb).await),
            Verb::Tree(verb) => ("tree", tree::run(verb).await),
            Verb::History(verb) => ("history", history::run(verb).await),
            Verb::Diff(verb) => ("diff", history::diff(verb).await),
            Verb::Apply(verb) => ("apply", apply::run(verb).await),
            Verb::Rollback(verb) => ("rollback", history::rollback(verb).await),
            Verb::Undelete(verb) => ("undelete", history::undelete(verb).await),
            Verb::Secrets(verb) => ("secrets rewrap", secrets::run(verb).await),
            Verb::Crds(verb) => ("crds check", crds::run(verb).await),
        }
    });
    match result {
        Ok(Outcome::Positive) => ExitCode::from(exit_codes::SUCCESS),
        Ok(Outcome::Negative) => ExitCode::from(exit_codes::FOUND),
        Err(failure) if failure.is_closed_pipe() => ExitCode::from(after_closed_pipe(verb)),
        Err(failure) => {
            fail_with_hint(&format!("{name}: {failure}"), failure.hint(), exit_codes::NOT_EXAMINED)
        }
    }
}
