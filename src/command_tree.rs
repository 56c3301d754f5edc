//! The whole command line as one tree, for help, completions and manual pages. Each verb reads its own part.

use clap::{Command, CommandFactory};

use crate::{client_verbs, config, crds, data, secrets, settings, testenv};

/// `portico` with its roles and all verbs.
pub(crate) fn portico() -> Command {
    settings::command().subcommands(verbs())
}

/// What `portico` does besides serving, in the order of help.
pub(crate) fn verbs() -> Vec<Command> {
    let mut verbs = client_verbs::commands();
    verbs.push(crds::Cli::command().name("crds").about("Say what CustomResourceDefinitions would break"));
    verbs.push(config::Cli::command().name("config").about("Check a folder of manifests (--manifests)"));
    verbs.push(secrets::Cli::command().name("secrets").about("Look after what is encrypted at rest"));
    verbs.push(
        testenv::Cli::command().name("testenv").about("Run operators' tests (envtest) on this program"),
    );
    verbs.extend(data::Cli::command().get_subcommands().cloned());
    // Behind the roles, in this order.
    verbs.into_iter().enumerate().map(|(at, verb)| verb.display_order(10 + at)).collect()
}
