//! Writes the generated pages of docs/reference; with `--check`, fails if a page is stale.
#![expect(clippy::print_stderr, reason = "a command reports to its terminal")]

use std::process::ExitCode;

use portico_tests::reference;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            for file in reference::write() {
                eprintln!("wrote {file}");
            }
            ExitCode::SUCCESS
        }
        ["--check"] => match reference::stale() {
            None => ExitCode::SUCCESS,
            Some(report) => {
                eprintln!("{report}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: reference [--check]");
            ExitCode::from(2)
        }
    }
}
