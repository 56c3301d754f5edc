//! `portico crds check`: what definitions would do if they were applied. Asks the control service; writes nothing.

mod failure;
mod print;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use portico_proto::apiextensions::finding::Kind;
use portico_proto::apiextensions::{CheckRequest, CheckResponse};

use crate::control_service::{ControlService, parse, refusal};
use crate::documents::{self, Document};
use failure::Failure;

/// How long the control service may take for one definition: it checks all stored objects.
const DEADLINE: Duration = Duration::from_secs(300);
/// Something was found that breaks.
const FOUND: u8 = 1;
/// It could not be looked at.
const FAILED: u8 = 2;

/// Client verbs about CustomResourceDefinitions.
#[derive(Debug, Parser)]
#[command(name = "portico crds", bin_name = "portico crds", about, disable_version_flag = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Report what definitions would do if they were applied: refusals, what they break for clients, which stored objects
    /// would be invalid or lose fields. Nothing is written. Exit code 0: nothing breaks; 1: something does; 2: not checked.
    Check(Check),
}

#[derive(Debug, clap::Args)]
struct Check {
    /// Files of definitions, YAML (several documents each) or JSON; - reads what is piped in. Other kinds are passed over.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How findings are printed.
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

/// Runs the verb in these arguments, of which the first are `portico crds`.
pub(crate) fn main(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let cli: Cli = match parse(arguments, FAILED) {
        Ok(cli) => cli,
        Err(ending) => return ending,
    };
    let Verb::Check(check) = cli.verb;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(Failure::from).and_then(|runtime| runtime.block_on(run(&check)));
    match outcome {
        Ok(all) if all.iter().any(breaks) => ExitCode::from(FOUND),
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => crate::ending::fail_with(&format!("crds check: {failure}"), FAILED),
    }
}

async fn run(check: &Check) -> Result<Vec<CheckResponse>, Failure> {
    let mut definitions = documents::objects(&check.files)?;
    definitions.retain(|document| document.head.kind == "CustomResourceDefinition");
    if definitions.is_empty() {
        return Err("there is no CustomResourceDefinition in what was given".into());
    }
    let client = check.control.client(DEADLINE)?;
    let mut all = Vec::new();
    for Document { from, manifest, media_type, .. } in definitions {
        let request = CheckRequest { definition: manifest, media_type: media_type.to_owned() };
        let answer = client.definitions().check(request).await;
        let checked = answer.map_err(|status| format!("{from}: {}", refusal(&status)))?.into_inner();
        if check.output == Output::Text {
            print::text(&checked)?;
        }
        all.push(checked);
    }
    if check.output == Output::Json {
        print::json(&all)?;
    }
    Ok(all)
}

/// Whether anything but warnings was found.
fn breaks(checked: &CheckResponse) -> bool {
    checked.findings.iter().any(|finding| finding.kind() != Kind::Warning)
}
