//! `portico secrets rewrap`: has the control service encrypt all objects with the configured key.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use portico_gostd::os::error_text;
use portico_proto::admin::{RewrapProgress, RewrapRequest};

use crate::control_service::{ControlService, NoClient, describe, is_unreachable};
use crate::exit::fail_with_hint;
use crate::exit_codes;

/// Deadline of the call: it may have to write every object of a large store.
const DEADLINE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Encrypt all objects again with the first provider and key of --encryption-provider-config
    ///
    /// The server keeps serving. Past states that --history-retention keeps are encrypted again, too; all others are dropped. If the
    /// command is interrupted, call it again: it continues.
    ///
    /// Exit codes: 0 everything is encrypted as configured; 1 some objects or past states cannot be decrypted; 2 not done.
    Rewrap(Rewrap),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rewrap {
    #[command(flatten)]
    control: ControlService,
}

/// Error of the command, in one line.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Unreachable(#[from] NoClient),
    #[error("{}", describe(.0))]
    Refused(#[from] tonic::Status),
    #[error("the control service ended before all objects were encrypted again")]
    CutOff,
    #[error(
        "all objects are encrypted again, but not the past states that are kept: the control service is of an earlier release than this \
         portico"
    )]
    HistoriesLeft,
    #[error("{}", error_text(.0))]
    Output(#[from] io::Error),
}

impl Failure {
    /// Advice to the user, if any.
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable(error) => error.hint(),
            Self::Refused(status) if is_unreachable(status) => Some(NoClient::OTHER_SERVER),
            Self::CutOff => Some("call it again: it continues"),
            _ => None,
        }
    }
}

/// Runs the command.
pub(crate) fn run(verb: &Verb) -> ExitCode {
    let Verb::Rewrap(verb) = verb;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(Failure::from).and_then(|runtime| runtime.block_on(rewrap(verb)));
    match outcome {
        Ok(0) => ExitCode::from(exit_codes::SUCCESS),
        Ok(_) => ExitCode::from(exit_codes::FOUND),
        Err(failure) => {
            fail_with_hint(&format!("secrets rewrap: {failure}"), failure.hint(), exit_codes::NOT_EXAMINED)
        }
    }
}

/// Returns the number of objects and past states that cannot be decrypted.
async fn rewrap(verb: &Rewrap) -> Result<i64, Failure> {
    let client = verb.control.client(DEADLINE)?;
    let answer = client.admin().rewrap(RewrapRequest {}).await;
    let mut progress = answer?.into_inner();
    let (mut out, mut unreadable) = (io::stdout(), 0);
    let mut last = RewrapProgress::default();
    loop {
        let message = progress.message().await?.ok_or(Failure::CutOff)?;
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
