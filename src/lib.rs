//! The `portico` command: servers, client commands, and tools for stored data and for tests.

mod client_verbs;
mod command_line;
mod completion;
mod config;
mod connection_flags;
mod control_service;
mod data;
mod documents;
mod etcd_flags;
mod exit;
mod exit_codes;
mod postgres_flags;
mod reference;
mod run;
mod settings;
mod shell;
mod testenv;
mod usage_error;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let started = Instant::now();
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    match arguments.first().and_then(|program| testenv::Name::from_program(program)) {
        Some(testenv::Name::SetupEnvtest) => {
            drop(arguments.splice(..1, ["portico".into(), testenv::VERB.into()]))
        }
        Some(name) => return testenv::main_as(name, arguments),
        None => {}
    }
    command_line::run(&arguments, started)
}
