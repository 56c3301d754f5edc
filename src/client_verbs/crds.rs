//! `portico crds check`: reports what CustomResourceDefinitions would break, without applying the definitions.

mod print;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use portico_proto::apiextensions::finding::Kind;
use portico_proto::apiextensions::{CheckRequest, CheckResponse};

use super::failure::Failure;
use super::outcome::Outcome;
use crate::control_service::ControlService;
use crate::documents::{self, ManifestDocument};

/// Deadline for checking one definition, which reads all of its stored objects.
const DEADLINE: Duration = Duration::from_secs(300);

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Report changes of CustomResourceDefinitions that break clients, invalidate stored objects or drop their fields
    ///
    /// The definitions are not applied.
    ///
    /// Exit codes: 0 no errors or breaking changes; 1 errors or breaking changes found; 2 not checked.
    Check(Check),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Files of CustomResourceDefinitions in YAML or JSON; - reads standard input. Objects of other kinds are skipped
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output format
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    control: ControlService,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Runs `portico crds check`.
pub(super) async fn run(verb: &Verb) -> Result<Outcome, Failure> {
    let Verb::Check(check) = verb;
    let mut definitions = documents::objects(&check.files)?;
    definitions.retain(|document| document.head.kind == "CustomResourceDefinition");
    if definitions.is_empty() {
        return Err(Failure::Usage("the files contain no CustomResourceDefinition".to_owned()));
    }
    let client = check.control.client(DEADLINE)?;
    let mut all = Vec::new();
    for ManifestDocument { origin, manifest, media_type, .. } in definitions {
        let request = CheckRequest { definition: manifest, media_type: media_type.to_owned() };
        let answer = client.definitions().check(request).await;
        let refused = |status| Failure::RefusedDocument { from: origin, status: Box::new(status) };
        let checked = answer.map_err(refused)?.into_inner();
        if check.output == Output::Text {
            print::text(&checked)?;
        }
        all.push(checked);
    }
    if check.output == Output::Json {
        print::json(&all)?;
    }
    Ok(if all.iter().any(has_errors) { Outcome::Negative } else { Outcome::Positive })
}

/// Returns true if a finding is more than a warning.
fn has_errors(response: &CheckResponse) -> bool {
    response.findings.iter().any(|finding| finding.kind() != Kind::Warning)
}
