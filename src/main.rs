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
mod run;
mod secrets;
mod settings;
mod testenv;

use std::process::ExitCode;
use std::time::Instant;

use ending::{fail_with, print_text};
use settings::{Parsed, SettingError};

/// Why not the system's: docs/adr/0005.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A setting is wrong; nothing was bound.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let started = Instant::now();
    let mut arguments = std::env::args_os();
    if let Some(name) = arguments.next().as_deref().and_then(testenv::Name::of) {
        return testenv::main_as(name, std::env::args_os().collect());
    }
    let verb = arguments.next().unwrap_or_default();
    match verb.to_str() {
        Some("crds") => return crds::main(std::env::args_os().skip(1)),
        Some("config") => return config::main(std::env::args_os().skip(1)),
        Some(testenv::VERB) => return testenv::main(std::env::args_os().skip(1)),
        Some("secrets") => return secrets::main(std::env::args_os().skip(1)),
        Some(verb) if client_verbs::VERBS.contains(&verb) => {
            return client_verbs::main(std::env::args_os(), command_tree::portico());
        }
        Some(verb) if data::VERBS.contains(&verb) => return data::main(std::env::args_os()),
        _ => {}
    }
    match settings::parse(std::env::args_os().collect(), command_tree::verbs()) {
        Ok(Parsed::Print(text)) => print_text(&text),
        Ok(Parsed::Version) => print_text(&run::version()),
        Ok(Parsed::Run(role, settings)) => match run::run(role, *settings, started) {
            Ok(code) => ExitCode::from(code),
            Err(failure) => fail_with(&failure.to_string(), failure.exit_code()),
        },
        Err(error) => refuse_setting(&error),
    }
}

fn refuse_setting(error: &SettingError) -> ExitCode {
    fail_with(&error.to_string(), USAGE)
}
