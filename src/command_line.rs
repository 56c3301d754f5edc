//! Command line: defines the tree of commands and runs the selected command.

mod connection;
mod help;
mod server_flags;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::error::{Error, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::completion::{Completion, Man};
use crate::exit::{fail_with, fail_with_hint, print_text};
use crate::settings::{self, Role};
use crate::usage_error::UsageError;
use crate::{client_verbs, config, data, exit_codes, reference, run, testenv};
use connection::UnusedFlag;
use help::Help;
use server_flags::ServerFlags;

/// The Kubernetes API without a Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(name = "portico", version = run::version_numbers(), disable_help_subcommand = true, args = connection::arguments())]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    /// Server flags that precede the command, or that are given without a command.
    #[arg(skip)]
    flags: ServerFlags,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run control service and facade in one process (the default)
    ///
    /// With `-- CMD ARGS`: starts CMD once the API is served, with KUBECONFIG set, and stops when CMD exits. Logs only errors by default in
    /// this mode.
    ///
    /// Exit codes: 0 stopped by a signal; 1 failed; 2 a setting is invalid; 3 the database was replaced; with CMD, the exit code of CMD.
    #[command(version = run::version_numbers())]
    Run {
        /// Program to run, and its arguments
        #[arg(last = true, value_name = "CMD")]
        program: Vec<OsString>,
        #[command(flatten)]
        flags: ServerFlags,
    },
    /// Run only the control service, which stores objects and serves gRPC
    ///
    /// Exit codes: 0 stopped by a signal; 1 failed; 2 a setting is invalid; 3 the database was replaced.
    #[command(version = run::version_numbers())]
    Server(ServerFlags),
    /// Run only a facade, which serves HTTPS for a control service
    ///
    /// --control-kubeconfig selects the control service.
    ///
    /// Exit codes: 0 stopped by a signal; 1 failed; 2 a setting is invalid.
    #[command(version = run::version_numbers())]
    Facade(ServerFlags),
    #[command(flatten)]
    Client(Box<client_verbs::Verb>),
    #[command(flatten)]
    Data(Box<data::Verb>),
    /// Check a folder of manifests before a server applies it
    #[command(subcommand)]
    Config(config::Verb),
    /// Run envtest-based tests of operators on Portico
    #[command(subcommand)]
    Testenv(testenv::Verb),
    Completion(Completion),
    Man(Man),
    /// Print the version
    Version,
    Help(Help),
    /// Print the data of the pages in docs/reference as JSON
    #[command(hide = true)]
    Reference,
}

/// Returns the tree of all commands, with the overview of one screen as its help.
pub(crate) fn command() -> clap::Command {
    let command = CommandLine::command().args(server_flags::arguments());
    let overview = help::overview(&command);
    command.override_help(overview)
}

/// Runs the command that `arguments` select. The first argument is the name of the program.
pub(crate) fn run(arguments: &[OsString], started: Instant) -> ExitCode {
    // Server flags and the help text take most of the startup time, so they are built only if needed.
    let begins_with_flag = arguments.get(1).is_some_and(|first| first.as_encoded_bytes().starts_with(b"-"));
    let asks_for_help = arguments.iter().any(|argument| argument == "-h" || argument == "--help");
    let mut tree = match (begins_with_flag, asks_for_help) {
        (true, true) => command(),
        (true, false) => CommandLine::command().args(server_flags::arguments()),
        (false, _) => CommandLine::command(),
    };
    let matches = match tree.try_get_matches_from_mut(arguments) {
        Ok(matches) => matches,
        Err(error) => return refuse(&error),
    };
    if let Some(unused) = UnusedFlag::find(&tree, &matches) {
        return fail_with_hint(&unused.to_string(), Some(&unused.hint()), exit_codes::USAGE);
    }
    match CommandLine::read(&matches) {
        Ok(line) => line.run(arguments, started),
        Err(error) => refuse(&error),
    }
}

impl CommandLine {
    fn read(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self { flags: ServerFlags::from_arg_matches(matches)?, ..Self::from_arg_matches(matches)? })
    }

    fn run(self, arguments: &[OsString], started: Instant) -> ExitCode {
        let Self { command, flags: ServerFlags(mut before), .. } = self;
        let (role, flags, program) = match command {
            None => (Role::AllInOne, ServerFlags::default(), Vec::new()),
            Some(Command::Run { program, flags }) => {
                if let Err(message) = check_program(&program, arguments) {
                    return fail_with(message, exit_codes::USAGE);
                }
                (Role::AllInOne, flags, program)
            }
            Some(Command::Server(flags)) => (Role::Server, flags, Vec::new()),
            Some(Command::Facade(flags)) => (Role::Facade, flags, Vec::new()),
            Some(command) => return run_client(command, before.first()),
        };
        before.extend(flags.0);
        serve(role, before, program, started)
    }
}

fn check_program(program: &[OsString], arguments: &[OsString]) -> Result<(), &'static str> {
    match program.first() {
        Some(name) if name.is_empty() => Err("--: the name of the program to run is empty"),
        None if arguments.last().is_some_and(|last| last == "--") => {
            Err("--: name the program to run: portico run -- CMD ARGS")
        }
        _ => Ok(()),
    }
}

fn serve(role: Role, flags: Vec<OsString>, program: Vec<OsString>, started: Instant) -> ExitCode {
    let settings = match settings::parse(role, flags, program) {
        Ok(settings) => settings,
        Err(error) => return fail_with_hint(&error.to_string(), error.hint(), exit_codes::USAGE),
    };
    match run::run(role, settings, started) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => fail_with_hint(&failure.to_string(), failure.hint(), failure.exit_code()),
    }
}

/// Runs a command that is not a server. Refuses `server_flag`, a server flag before the command.
fn run_client(command: Command, server_flag: Option<&OsString>) -> ExitCode {
    if let Some(flag) = server_flag {
        let flag = flag.to_string_lossy();
        let flag = flag.split_once('=').map_or(&*flag, |(flag, _)| flag);
        let hint = "flags of a command go behind the command; `portico help COMMAND` lists them";
        return fail_with_hint(
            &format!("{flag}: before the command, only servers have this flag"),
            Some(hint),
            exit_codes::USAGE,
        );
    }
    match command {
        Command::Client(verb) => client_verbs::run(&verb),
        Command::Data(verb) => data::run(&verb),
        Command::Config(verb) => config::run(&verb),
        Command::Testenv(verb) => testenv::run(verb),
        Command::Completion(completion) => completion.print(self::command()),
        Command::Man(man) => man.print(self::command()),
        Command::Help(help) => help.print(self::command()),
        Command::Reference => reference::print(self::command()),
        Command::Run { .. } | Command::Server(_) | Command::Facade(_) | Command::Version => {
            print_text(&run::version(), exit_codes::NOT_PRINTED)
        }
    }
}

/// Prints the requested help or version, or the error in the arguments.
fn refuse(error: &Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayVersion => return print_text(&run::version(), exit_codes::NOT_PRINTED),
        ErrorKind::DisplayHelp => return print_text(&error.to_string(), exit_codes::NOT_PRINTED),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A failed write to standard error cannot be reported anywhere.
            let _ = error.print();
            return ExitCode::from(exit_codes::USAGE);
        }
        _ => {}
    }
    let usage_error = UsageError::from_clap(error);
    let hint = help::hint(error.kind(), &usage_error, &CommandLine::command());
    let usage = usage_error.usage.as_ref().map(|usage| format!("\n{usage}")).unwrap_or_default();
    fail_with_hint(&format!("{usage_error}{usage}"), hint.as_deref(), exit_codes::USAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> CommandLine {
        let arguments = words.split(' ').map(OsString::from);
        command().try_get_matches_from(arguments).and_then(|matches| CommandLine::read(&matches)).unwrap()
    }

    #[test]
    fn the_tree_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn flags_of_a_server_are_read_before_and_behind_the_command() {
        for words in
            ["portico --secure-port=0 server --v 2", "portico --secure-port 0 run -v=2 -- true --v=3"]
        {
            let CommandLine { command, flags, .. } = read(words);
            assert_eq!(flags.0, ["--secure-port=0"], "{words}");
            let (Some(Command::Server(behind)) | Some(Command::Run { flags: behind, .. })) = command else {
                panic!("{words}: not a server");
            };
            assert_eq!(behind.0, ["--v=2"], "{words}");
        }
        let list = read("portico --requestheader-allowed-names=a,b --ephemeral").flags.0;
        assert!(list.contains(&"--ephemeral=true".into()), "{list:?}");
        let names: Vec<_> = list.iter().filter(|flag| flag.to_string_lossy().starts_with("--req")).collect();
        assert_eq!(names, ["--requestheader-allowed-names=a", "--requestheader-allowed-names=b"]);
    }
}
