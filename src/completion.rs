//! `portico completion` and `portico man`: print completion scripts for shells, and manual pages.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap_complete::Shell;
use portico_gostd::os::error_text;

use crate::exit::{after_output, fail_with, fail_with_hint};
use crate::exit_codes;

/// Print the completion script for a shell
///
/// In bash: `source <(portico completion bash)`.
///
/// Exit codes: 0 printed; 2 not printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Completion {
    /// Shell that reads the script
    #[arg(value_enum)]
    shell: Shell,
}

/// Print manual pages, or write them into a folder
///
/// Exit codes: 0 printed or written; 2 not printed or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Command to describe, such as `get` or `crds check`; by default, portico itself
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write all pages (`portico.1`, `portico-get.1`, ...) into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

impl Completion {
    /// Prints the completion script for the command line `portico`.
    pub(crate) fn print(&self, mut portico: clap::Command) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut portico, "portico", &mut script);
        after_output(io::stdout().write_all(&script), exit_codes::SUCCESS, exit_codes::NOT_PRINTED)
    }
}

impl Man {
    /// Prints the page of the command, or writes all pages if `--dir` is given.
    pub(crate) fn print(&self, mut portico: clap::Command) -> ExitCode {
        if let Some(folder) = &self.dir {
            let created = std::fs::create_dir_all(folder);
            return match created.and_then(|()| clap_mangen::generate_to(portico, folder)) {
                Ok(()) => ExitCode::from(exit_codes::SUCCESS),
                Err(error) => fail_with(&format!("man: {}", error_text(&error)), exit_codes::NOT_PRINTED),
            };
        }
        portico.build();
        let mut names = self.command.iter();
        match names.try_fold(&portico, |command, name| command.find_subcommand(name)) {
            Some(command) => {
                let printed = clap_mangen::Man::new(command.clone()).render(&mut io::stdout());
                after_output(printed, exit_codes::SUCCESS, exit_codes::NOT_PRINTED)
            }
            None => {
                let text = format!("man: unknown command: {}", self.command.join(" "));
                fail_with_hint(&text, Some("`portico -h` lists all commands"), exit_codes::USAGE)
            }
        }
    }
}
