//! Replaces the programs that controller-runtime's envtest starts: `portico testenv install` creates files with their names, under which
//! this program behaves like them.

mod api_server;
mod arguments;
mod assets;
mod election;
mod etcd;
mod format;
mod install;
mod kubectl;
mod names;
mod state_location;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};

use crate::exit::{fail_with, print_text};
use crate::exit_codes;
use assets::{Assets, Selection};
pub(crate) use names::Name;

/// Name of the command.
pub(crate) const VERB: &str = "testenv";

/// Runs as the program of this name; the first argument is its name.
pub(crate) fn main_as(name: Name, arguments: Vec<OsString>) -> ExitCode {
    match name {
        Name::ApiServer => api_server::main(arguments),
        Name::Etcd => etcd::main(&arguments),
        Name::Kubectl | Name::SetupEnvtest => kubectl::main(),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Create kube-apiserver, etcd and kubectl in a folder, for KUBEBUILDER_ASSETS
    ///
    /// Exit codes: 0 created; 1 not; 2 the command line is invalid.
    Install {
        /// Folder, created if missing; files of these names are replaced
        dir: PathBuf,
        /// Create symbolic links to this program instead of files that stay the same when it is replaced
        #[arg(long)]
        symlink: bool,
    },
    /// Create setup-envtest for a Makefile of kubebuilder: make test ENVTEST_VERSION=portico
    ///
    /// Exit codes: 0 created; 1 not; 2 the command line is invalid.
    SetupEnvtest {
        /// Folder (LOCALBIN of the Makefile), created if missing
        dir: PathBuf,
    },
    /// Set up the programs and print the value of KUBEBUILDER_ASSETS: eval "$(portico testenv use)"
    ///
    /// Creates the folder unless it exists and belongs to this program.
    ///
    /// Exit codes: 0 printed; 1 the folder could not be created; 2 the command line is invalid.
    Use {
        /// Folder, or a version of Kubernetes as for setup-envtest
        #[arg(value_name = "DIR|VERSION")]
        selection: Option<String>,
        /// Folder in which k8s/VERSION is created, as by setup-envtest
        #[arg(long, value_name = "DIR")]
        bin_dir: Option<PathBuf>,
        /// Output format of setup-envtest
        #[arg(short, long, value_name = "FORM", value_enum)]
        print: Option<Print>,
        /// Print a line for a file of variables
        #[arg(short, long, value_name = "FORM", value_enum, conflicts_with = "print")]
        output: Option<Output>,
        /// Accepted for compatibility with setup-envtest; nothing is ever downloaded
        #[arg(short, long)]
        installed_only: bool,
    },
}

/// Output formats of setup-envtest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Print {
    /// Version, platform and path
    Overview,
    /// The folder
    Path,
    /// A line for a shell
    Env,
}

/// Files of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// NAME=VALUE, for --env-file and the like
    Env,
    /// A line for the file that GITHUB_ENV names
    Github,
}

/// Runs the command.
pub(crate) fn run(verb: Verb) -> ExitCode {
    let done = match verb {
        Verb::Install { dir, symlink } => install(&dir, symlink),
        Verb::SetupEnvtest { dir } => install::setup_envtest(&dir),
        Verb::Use { selection, bin_dir, print, output, installed_only: _ } => {
            let selection = Selection { text: selection.as_deref(), bin_dir: bin_dir.as_deref() };
            assets::select(&selection).and_then(|assets| use_folder(&assets, print, output))
        }
    };
    match done {
        Ok(text) => print_text(&text, exit_codes::FAILED),
        Err(error) => fail_with(&format!("{VERB}: {error}"), exit_codes::FAILED),
    }
}

fn install(dir: &Path, symlink: bool) -> Result<String, String> {
    let made = install::install(dir, if symlink { install::Link::Symbolic } else { install::Link::Lasting })?;
    Ok(format!("{made}\n\n  {}", format::shell(&assets::absolute(dir)?)))
}

fn use_folder(assets: &Assets, print: Option<Print>, output: Option<Output>) -> Result<String, String> {
    let dir = &assets.dir;
    if let Some(warning) = &assets.warning {
        // A closed standard error does not matter.
        let _ = writeln!(std::io::stderr(), "portico: {VERB}: {warning}");
    }
    if !install::is_current(dir) {
        install::install(dir, install::Link::Lasting)?;
    }
    let dir = assets::absolute(dir)?;
    Ok(match (print, output) {
        (Some(Print::Path), _) => format::path(&dir),
        (Some(Print::Overview), _) => format::overview(&dir),
        (_, Some(Output::Env | Output::Github)) => format::variable(&dir),
        (Some(Print::Env) | None, None) => format::shell(&dir),
    })
}
