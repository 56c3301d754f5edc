//! `portico secrets rewrap`: makes the control service encrypt all objects again with the configured key.

use std::time::Duration;

use clap::Subcommand;
use portico_proto::admin::{RewrapProgress, RewrapRequest};

use super::failure::Failure;
use super::outcome::Outcome;
use super::output;
use crate::control_service::ControlService;

/// Deadline of the call, which may have to write every object of a large store.
const DEADLINE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Encrypt all objects again with the first provider and key of --encryption-provider-config
    ///
    /// The server stays available. Past states that --history-retention keeps are encrypted again, too; all other past states are dropped.
    /// An interrupted rewrap continues when you repeat the command.
    ///
    /// Exit codes: 0 everything is encrypted as configured; 1 some objects or past states cannot be decrypted; 2 not completed.
    Rewrap(Rewrap),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rewrap {
    #[command(flatten)]
    control: ControlService,
}

/// Runs `portico secrets rewrap`.
pub(super) async fn run(verb: &Verb) -> Result<Outcome, Failure> {
    let Verb::Rewrap(verb) = verb;
    match rewrap(verb).await? {
        0 => Ok(Outcome::Positive),
        _ => Ok(Outcome::Negative),
    }
}

/// Returns the number of objects and past states that cannot be decrypted.
async fn rewrap(verb: &Rewrap) -> Result<i64, Failure> {
    let client = verb.control.client(DEADLINE)?;
    let mut progress = client.admin().rewrap(RewrapRequest {}).await?.into_inner();
    let mut unreadable = 0;
    let mut last = RewrapProgress::default();
    loop {
        let message = progress.message().await?.ok_or_else(interrupted_error)?;
        if message.resource != last.resource {
            unreadable += last.unreadable;
        }
        if message.resource.is_empty() {
            let states = message.past_states.ok_or_else(past_states_skipped_error)?;
            output::lines([last_line(states, &message)])?;
            return Ok(unreadable + message.past_unreadable);
        }
        output::lines([progress_line(&message)])?;
        last = message;
    }
}

fn interrupted_error() -> Failure {
    Failure::Hinted(
        "the control service ended before all objects were encrypted again".to_owned(),
        "repeat the command: it continues",
    )
}

fn past_states_skipped_error() -> Failure {
    Failure::Hinted(
        "all objects are encrypted again, but their past states are not: the control service is of an earlier release than this portico"
            .to_owned(),
        "upgrade the control service and repeat the command",
    )
}

fn progress_line(progress: &RewrapProgress) -> String {
    let RewrapProgress { resource, objects, stale, rewritten, unreadable, .. } = progress;
    format!("{resource}: {rewritten} of {stale} rewritten, {objects} objects{}", unreadable_note(*unreadable))
}

fn last_line(past_states: i64, progress: &RewrapProgress) -> String {
    let RewrapProgress { past_rewritten, past_unreadable, .. } = progress;
    let note = unreadable_note(*past_unreadable);
    format!("done: {past_rewritten} of {past_states} kept past states rewritten{note}, all others dropped")
}

fn unreadable_note(unreadable: i64) -> String {
    if unreadable > 0 { format!(", {unreadable} cannot be decrypted") } else { String::new() }
}
