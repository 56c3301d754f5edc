//! The `portico` command: control service and facade in one process, or either alone; verbs of its client; and what `testenv` makes of it.

mod client_verbs;
mod command_tree;
mod config;
mod control_service;
mod crds;
mod data;
mod documents;
mod ending;
mod etcd_flags;
mod kubeconfig_flag;
mod leading_flags;
mod reference;
mod run;
mod secrets;
mod settings;
mod shell;
mod testenv;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use ending::{fail_with, print_text};
use settings::{Parsed, SettingError};

/// mimalloc instead of the system allocator: docs/internals/adr/0005.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A setting is wrong; nothing was bound.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let started = Instant::now();
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(name) = arguments.first().and_then(|program| testenv::Name::of(program)) {
        return testenv::main_as(name, arguments);
    }
    if let Some(moved) = leading_flags::moved_behind_the_verb(&arguments) {
        arguments = moved;
    }
    let behind = |arguments: Vec<OsString>| arguments.into_iter().skip(1);
    match arguments.get(1).and_then(|verb| verb.to_str()) {
        Some("crds") => return crds::main(behind(arguments)),
        Some("config") => return config::main(behind(arguments)),
        Some(reference::VERB) => return reference::main(),
        Some(testenv::VERB) => return testenv::main(behind(arguments)),
        Some("secrets") => return secrets::main(behind(arguments)),
        Some(verb) if client_verbs::VERBS.contains(&verb) => {
            return client_verbs::main(arguments.into_iter(), command_tree::portico());
        }
        Some(verb) if data::VERBS.contains(&verb) => return data::main(arguments.into_iter()),
        _ => {}
    }
    match settings::parse(arguments.clone(), command_tree::verbs()) {
        Ok(Parsed::Print(text)) => print_text(&text),
        Ok(Parsed::Version) => print_text(&run::version()),
        Ok(Parsed::Run(role, settings)) => match run::run(role, *settings, started) {
            Ok(code) => ExitCode::from(code),
            Err(failure) => fail_with(&failure.to_string(), failure.exit_code()),
        },
        Err(error) => refuse_setting(&error, leading_flags::misplaced_verb(&arguments)),
    }
}

/// Says what is wrong, and where flags of a verb belong that may have been meant.
fn refuse_setting(error: &SettingError, verb: Option<&str>) -> ExitCode {
    let place = verb
        .filter(|_| error.is_unknown())
        .map(|verb| format!("; flags of {verb} go behind it: portico {verb} ..."));
    fail_with(&format!("{error}{}", place.unwrap_or_default()), USAGE)
}
