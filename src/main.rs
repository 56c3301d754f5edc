//! The `portico` command: control service and facade in one process, or either alone; and verbs of its client.

mod crds;
mod data;
mod run;
mod settings;

use std::process::ExitCode;
use std::time::Instant;

use settings::{Parsed, Role, SettingError};

/// Why not the system's: docs/adr/0005.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A setting is wrong; nothing was bound.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let started = Instant::now();
    let verb = std::env::args_os().nth(1).unwrap_or_default();
    match verb.to_str() {
        Some("crds") => return crds::main(std::env::args_os().skip(1)),
        Some(verb) if data::VERBS.contains(&verb) => return data::main(std::env::args_os()),
        _ => {}
    }
    match settings::parse(std::env::args_os().collect()) {
        Ok(Parsed::Print(text)) => say(&text),
        Ok(Parsed::Version | Parsed::Run(Role::Version, _)) => say(&run::version()),
        Ok(Parsed::Run(role, settings)) => match run::run(role, *settings, started) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => complain(&failure.to_string(), failure.exit_code()),
        },
        Err(error) => complain_setting(&error),
    }
}

fn say(text: &str) -> ExitCode {
    use std::io::Write;
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn complain_setting(error: &SettingError) -> ExitCode {
    complain(&error.to_string(), USAGE)
}

fn complain(text: &str, code: u8) -> ExitCode {
    use std::io::Write;
    // Nowhere is left to say that nothing can be said.
    let _ = writeln!(std::io::stderr(), "portico: {text}");
    ExitCode::from(code)
}
