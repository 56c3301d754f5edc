//! `portico explain`: shows the stages that a request to an API passes, and the stage at which it fails.

use portico_proto::routes::{AdmissionPolicy, AdmissionWebhook, ExplainRequest, ExplainResponse, Stage};

use super::failure::Failure;
use super::outcome::{DEADLINE, Outcome};
use super::output::{self, Format};
use super::stages::{pending_state_cell, reason_and_message, state_cell};
use super::table::Table;
use crate::control_service::ControlService;

/// Show whether requests reach an API, and at which stage they fail
///
/// Lists the stages of a request, each with the time of its last change and the facades that report it, then the admission webhooks and
/// policies that apply to writes.
///
/// Exit codes: 0 the API is reachable; 1 the API is not reachable; 2 the state of the API is unknown.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// URL path (`/apis/wardle.example.com/v1alpha1/flunders`), GROUP/VERSION, or name of an APIService
    subject: String,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    control: ControlService,
}

/// Prints the stages of a request to the API.
pub(super) async fn run(explain: &Explain) -> Result<Outcome, Failure> {
    let client = explain.control.client(DEADLINE)?;
    let request = ExplainRequest { subject: explain.subject.clone() };
    let explained = client.routes().explain(request).await?.into_inner();
    match explain.output {
        Format::Table | Format::Wide => text(&explain.subject, &explained)?,
        Format::Name => {
            output::lines([format!("apiservice.apiregistration.k8s.io/{}", explained.api_service)])?
        }
        Format::Json | Format::Yaml => output::value(&explained, explain.output)?,
    }
    Ok(if explained.ok { Outcome::Positive } else { Outcome::Negative })
}

fn text(subject: &str, explained: &ExplainResponse) -> Result<(), Failure> {
    let summary = match explained.stages.iter().find(|stage| !stage.ok) {
        None => format!("{subject} is reachable"),
        Some(stage) => format!("{subject} fails at {}: {}", stage.stage, reason_and_message(stage)),
    };
    output::lines([summary])?;
    let mut table = Table::new(&["stage", "state", "what", "since", "seen by"]);
    table.rows = explained.stages.iter().map(row).collect();
    output::lines(table.lines(None))?;
    if explained.webhooks.is_empty() && explained.policies.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["a write meets", "name", "operations", "on failure", "state"]);
    table.rows.extend(explained.policies.iter().map(policy));
    table.rows.extend(explained.webhooks.iter().map(webhook));
    Ok(output::lines(std::iter::once(String::new()).chain(table.lines(None)))?)
}

fn row(stage: &Stage) -> Vec<super::table::Cell> {
    let verdict = match (stage.ok, &*stage.reason) {
        (true, "NotReported") => pending_state_cell("unknown"),
        (ok, _) => state_cell(if ok { "ok" } else { "FAILS" }, ok),
    };
    let (since, seen_by) = (stage.since.clone(), stage.seen_by.join(", "));
    vec![stage.stage.clone().into(), verdict, reason_and_message(stage).into(), since.into(), seen_by.into()]
}

fn policy(policy: &AdmissionPolicy) -> Vec<super::table::Cell> {
    let problem = policy.problems.join("; ");
    let verdict = if problem.is_empty() { "Evaluated" } else { &problem };
    vec![
        policy.kind.clone().into(),
        policy.name.clone().into(),
        policy.operations.join(",").into(),
        policy.failure_policy.clone().into(),
        state_cell(verdict, problem.is_empty()),
    ]
}

fn webhook(webhook: &AdmissionWebhook) -> Vec<super::table::Cell> {
    let is_healthy = matches!(&*webhook.health, "Answering" | "NeverAsked");
    let verdict =
        if is_healthy { webhook.health.clone() } else { format!("{}: {}", webhook.health, webhook.reason) };
    vec![
        webhook.kind.clone().into(),
        format!("{}/{}", webhook.configuration, webhook.name).into(),
        webhook.operations.join(",").into(),
        webhook.failure_policy.clone().into(),
        state_cell(&verdict, is_healthy),
    ]
}
