//! `portico completion` and `portico man`: what shells and man need to know of the command line.

use std::io::Write;
use std::path::PathBuf;

use clap_complete::Shell;

use super::failure::Failure;
use super::outcome::Ending;

/// Print a script of completions for a shell: `source <(portico completion bash)`
#[derive(Debug, clap::Args)]
pub(super) struct Completion {
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page of portico or of a verb, or write all of them into a folder
#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// A verb: `get`, `crds check`.
    verb: Vec<String>,
    /// Write `portico.1`, `portico-get.1` and so on here.
    #[arg(long, value_name = "FOLDER", conflicts_with = "verb")]
    dir: Option<PathBuf>,
}

impl Completion {
    /// Prints the script for this command line.
    pub(super) fn print(&self, mut portico: clap::Command) -> Result<Ending, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut portico, "portico", &mut script);
        std::io::stdout().write_all(&script)?;
        Ok(Ending::Well)
    }
}

impl Man {
    /// Prints the page, or writes all.
    pub(super) fn print(&self, mut portico: clap::Command) -> Result<Ending, Failure> {
        if let Some(folder) = &self.dir {
            std::fs::create_dir_all(folder)?;
            clap_mangen::generate_to(portico, folder)?;
            return Ok(Ending::Well);
        }
        portico.build();
        let mut command = &portico;
        for verb in &self.verb {
            let found = command.find_subcommand(verb);
            command =
                found.ok_or_else(|| Failure::Usage(format!("no such verb: {}", self.verb.join(" "))))?;
        }
        clap_mangen::Man::new(command.clone()).render(&mut std::io::stdout())?;
        Ok(Ending::Well)
    }
}
