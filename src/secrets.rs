//! `portico secrets rewrap`: has the control service seal anew what is not sealed as it should be.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use portico_gostd::os::error_text;
use portico_proto::admin::{RewrapProgress, RewrapRequest};

use crate::control_service::{ControlService, NoClient, parse, refusal};
use crate::ending::fail_with;

/// How long it may take: every object of a large store may have to be written.
const DEADLINE: Duration = Duration::from_secs(24 * 3600);
/// Objects, or past states, are left that cannot be opened.
const LEFT: u8 = 1;
/// It could not be done, or not to the end.
const FAILED: u8 = 2;

/// Client verbs about what is encrypted at rest.
#[derive(Debug, Parser)]
#[command(name = "portico secrets", bin_name = "portico secrets", about, disable_version_flag = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write anew every object that is not sealed with the first provider, and its first key, of its resource in
    /// --encryption-provider-config, seal anew the past states that --history-retention keeps, and forget all others. The server goes
    /// on serving; what was cut off is gone on with by the next call. Exit code 0: everything is sealed so; 1: objects or past states are left that cannot be opened; 2: not done.
    Rewrap(Rewrap),
}

#[derive(Debug, clap::Args)]
struct Rewrap {
    #[command(flatten)]
    control: ControlService,
}

/// Why it was not done; one line for people.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Unreachable(#[from] NoClient),
    #[error("{0}")]
    Refused(String),
    #[error("the control service ended before the work was done: call it again")]
    CutOff,
    #[error(
        "objects are written anew, but past states that are kept stay as they were sealed: the control service is of an earlier release \
         than this portico"
    )]
    HistoriesLeft,
    #[error("{}", error_text(.0))]
    Output(#[from] io::Error),
}

/// Runs the verb in these arguments, of which the first are `portico secrets`.
pub(crate) fn main(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let cli: Cli = match parse(arguments, FAILED) {
        Ok(cli) => cli,
        Err(ending) => return ending,
    };
    let Verb::Rewrap(verb) = cli.verb;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(Failure::from).and_then(|runtime| runtime.block_on(rewrap(&verb)));
    match outcome {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(LEFT),
        Err(failure) => fail_with(&format!("secrets rewrap: {failure}"), FAILED),
    }
}

/// How many objects and past states cannot be opened.
async fn rewrap(verb: &Rewrap) -> Result<i64, Failure> {
    let client = verb.control.client(DEADLINE)?;
    let answer = client.admin().rewrap(RewrapRequest {}).await;
    let mut progress = answer.map_err(|status| Failure::Refused(refusal(&status)))?.into_inner();
    let (mut out, mut unreadable) = (io::stdout(), 0);
    let mut last = RewrapProgress::default();
    loop {
        let message = progress.message().await;
        let message = message.map_err(|status| Failure::Refused(refusal(&status)))?;
        let message = message.ok_or(Failure::CutOff)?;
        if message.resource != last.resource {
            unreadable += last.unreadable;
        }
        if message.resource.is_empty() {
            let states = message.past_states.ok_or(Failure::HistoriesLeft)?;
            writeln!(out, "{}", last_line(states, &message))?;
            return Ok(unreadable + message.past_unreadable);
        }
        writeln!(out, "{}", line(&message))?;
        last = message;
    }
}

fn line(progress: &RewrapProgress) -> String {
    let RewrapProgress { resource, objects, stale, rewritten, unreadable, .. } = progress;
    format!("{resource}: {rewritten} of {stale} written anew, {objects} objects{}", left(*unreadable))
}

fn last_line(past_states: i64, progress: &RewrapProgress) -> String {
    let RewrapProgress { past_rewritten, past_unreadable, .. } = progress;
    let left = left(*past_unreadable);
    format!(
        "done: {past_rewritten} of {past_states} past states that are kept sealed anew{left}, all others forgotten"
    )
}

fn left(unreadable: i64) -> String {
    if unreadable > 0 { format!(", {unreadable} cannot be opened") } else { String::new() }
}
