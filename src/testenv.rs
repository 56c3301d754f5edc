//! Portico in the place of the programs that controller-runtime's envtest starts: `portico testenv install` makes them, and under
//! their names this program is them (docs/guides/operator-tests.md).

mod api_server;
mod arguments;
mod beside;
mod etcd;
mod install;
mod kept;
mod kubectl;
mod names;
mod place;
mod shown;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::control_service::parse;
use crate::ending::{fail_with, print_text};
pub(crate) use names::Name;
use names::{FAILED, USAGE};
use place::{Asked, Place};

/// The verb that is ours.
pub(crate) const VERB: &str = "testenv";

/// Is the program of this name, with these arguments (the first is its name).
pub(crate) fn main_as(name: Name, arguments: Vec<OsString>) -> ExitCode {
    match name {
        Name::ApiServer => api_server::main(arguments),
        Name::Etcd => etcd::main(&arguments),
        Name::Kubectl => kubectl::main(),
        Name::SetupEnvtest => main(arguments.into_iter()),
    }
}

/// Operators' tests (controller-runtime's envtest) on this program.
#[derive(Debug, Parser)]
#[command(name = "portico testenv", bin_name = "portico testenv", about, disable_version_flag = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make kube-apiserver, etcd and kubectl in a folder, for KUBEBUILDER_ASSETS to name. Exit code 0: made; 1: not.
    Install {
        /// The folder, which is made; what has these names there is replaced.
        dir: PathBuf,
        /// Make symbolic links to this program, which follow when it is replaced and lead nowhere when it is moved; by default
        /// the files stay what they are.
        #[arg(long)]
        symlink: bool,
    },
    /// Make setup-envtest in the bin folder of a project of kubebuilder, for its Makefile to use: make test ENVTEST_VERSION=portico. Exit
    /// code 0: made; 1: not.
    SetupEnvtest {
        /// The folder, which is made: the Makefile's LOCALBIN.
        dir: PathBuf,
    },
    /// Print what KUBEBUILDER_ASSETS is to be, after making the folder unless it is there and of this program: eval "$(portico testenv use)".
    /// Exit code 0: printed; 1: it could not be made.
    Use {
        /// The folder, or, as for setup-envtest, a version of Kubernetes.
        #[arg(value_name = "DIR|VERSION")]
        asked: Option<String>,
        /// Where to make a folder k8s/VERSION, as setup-envtest does.
        #[arg(long, value_name = "DIR")]
        bin_dir: Option<PathBuf>,
        /// Print it as setup-envtest does.
        #[arg(short, long, value_name = "FORM", value_enum)]
        print: Option<Print>,
        /// Print it for a file of variables.
        #[arg(short, long, value_name = "FORM", value_enum, conflicts_with = "print")]
        output: Option<Output>,
        /// For setup-envtest's sake: nothing is ever downloaded.
        #[arg(short, long)]
        installed_only: bool,
    },
}

/// setup-envtest's forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Print {
    /// For people.
    Overview,
    /// The folder alone.
    Path,
    /// A line for a shell.
    Env,
}

/// What files of variables are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// NAME=VALUE, a line, for --env-file and the like.
    Env,
    /// The line for the file that GITHUB_ENV names.
    Github,
}

/// Runs the verb in these arguments, of which the first is `testenv`.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let cli: Cli = match parse(arguments, USAGE) {
        Ok(cli) => cli,
        Err(ending) => return ending,
    };
    let done = match cli.verb {
        Verb::Install { dir, symlink } => install(&dir, symlink),
        Verb::SetupEnvtest { dir } => install::setup_envtest(&dir),
        Verb::Use { asked, bin_dir, print, output, installed_only: _ } => {
            place::of(&Asked { text: asked.as_deref(), bin_dir: bin_dir.as_deref() })
                .and_then(|place| use_folder(&place, print, output))
        }
    };
    match done {
        Ok(text) => print_text(&text),
        Err(error) => fail_with(&format!("{VERB}: {error}"), FAILED),
    }
}

fn install(dir: &Path, symlink: bool) -> Result<String, String> {
    let made = install::install(dir, if symlink { install::Link::Symbolic } else { install::Link::Lasting })?;
    Ok(format!("{made}\n\n  {}", shown::shell(&place::absolute(dir)?)))
}

fn use_folder(place: &Place, print: Option<Print>, output: Option<Output>) -> Result<String, String> {
    let dir = &place.dir;
    if let Some(warning) = &place.warning {
        // If standard error is closed, the tests still run.
        let _ = writeln!(std::io::stderr(), "portico: {VERB}: {warning}");
    }
    if !install::is_current(dir) {
        install::install(dir, install::Link::Lasting)?;
    }
    let dir = place::absolute(dir)?;
    Ok(match (print, output) {
        (Some(Print::Path), _) => shown::path(&dir),
        (Some(Print::Overview), _) => shown::overview(&dir),
        (_, Some(Output::Env | Output::Github)) => shown::variable(&dir),
        (Some(Print::Env) | None, None) => shown::shell(&dir),
    })
}
