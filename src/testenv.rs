//! Replaces the programs that controller-runtime's envtest starts: kube-apiserver, etcd and kubectl. `portico testenv install` links or
//! copies this program to files with these names. Started under such a name, this program behaves like the named program.

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

/// Name of the command `portico testenv`.
pub(crate) const VERB: &str = "testenv";

/// Runs as the program `name`. The first argument is the name of the started file.
pub(crate) fn main_as(name: Name, arguments: Vec<OsString>) -> ExitCode {
    match name {
        Name::ApiServer => api_server::main(arguments),
        Name::Etcd => etcd::main(&arguments),
        Name::Kubectl | Name::SetupEnvtest => kubectl::main(),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Create kube-apiserver, etcd and kubectl in a folder to which KUBEBUILDER_ASSETS can be set
    ///
    /// Exit codes: 0 created; 1 not created; 2 the command line is invalid.
    Install {
        /// Folder to create the programs in; it is created if missing, and existing files with the same names are replaced
        dir: PathBuf,
        /// Create symbolic links, which follow this program when it is replaced, instead of hard links or copies
        #[arg(long)]
        symlink: bool,
    },
    /// Create setup-envtest for a kubebuilder Makefile, so that make test ENVTEST_VERSION=portico uses Portico
    ///
    /// Exit codes: 0 created; 1 not created; 2 the command line is invalid.
    SetupEnvtest {
        /// Folder to create setup-envtest in (LOCALBIN of the Makefile); it is created if missing
        dir: PathBuf,
    },
    /// Set up the programs and print the value of KUBEBUILDER_ASSETS: eval "$(portico testenv use)"
    ///
    /// Creates the programs unless the folder already contains them.
    ///
    /// Exit codes: 0 printed; 1 the folder could not be created; 2 the command line is invalid.
    Use {
        /// Folder of the programs, or a Kubernetes version as for setup-envtest; by default, the served version
        #[arg(value_name = "DIR|VERSION")]
        selection: Option<String>,
        /// Folder in which k8s/VERSION is created, as by setup-envtest [default: ~/.local/share/portico/testenv]
        #[arg(long, value_name = "DIR")]
        bin_dir: Option<PathBuf>,
        /// Print in this format of setup-envtest [default: env]
        #[arg(short, long, value_name = "FORM", value_enum)]
        print: Option<Print>,
        /// Print a line for a file of environment variables
        #[arg(short, long, value_name = "FORM", value_enum, conflicts_with = "print")]
        output: Option<Output>,
        /// Accepted for compatibility with setup-envtest; has no effect, because nothing is downloaded
        #[arg(short, long)]
        installed_only: bool,
    },
}

/// Output formats of setup-envtest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Print {
    /// Version, platform and path
    Overview,
    /// Path of the folder
    Path,
    /// Line for a POSIX shell: export KUBEBUILDER_ASSETS=...
    Env,
}

/// Files of environment variables for which a line can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// NAME=VALUE, for files such as --env-file of docker
    Env,
    /// NAME=VALUE, for the file that GITHUB_ENV names
    Github,
}

/// Runs `portico testenv`.
pub(crate) fn run(verb: Verb) -> ExitCode {
    let result = match verb {
        Verb::Install { dir, symlink } => install(&dir, symlink),
        Verb::SetupEnvtest { dir } => install::setup_envtest(&dir),
        Verb::Use { selection, bin_dir, print, output, installed_only: _ } => {
            let selection = Selection { text: selection.as_deref(), bin_dir: bin_dir.as_deref() };
            assets::select(&selection).and_then(|assets| use_folder(&assets, print, output))
        }
    };
    match result {
        Ok(text) => print_text(&text, exit_codes::FAILED),
        Err(error) => fail_with(&format!("{VERB}: {error}"), exit_codes::FAILED),
    }
}

fn install(dir: &Path, symlink: bool) -> Result<String, String> {
    let descriptions =
        install::install(dir, if symlink { install::Link::Symbolic } else { install::Link::Lasting })?;
    Ok(format!("{descriptions}\n\n  {}", format::shell(&assets::absolute(dir)?)))
}

fn use_folder(assets: &Assets, print: Option<Print>, output: Option<Output>) -> Result<String, String> {
    let dir = &assets.dir;
    if let Some(warning) = &assets.warning {
        // A failed write to standard error is ignored.
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
