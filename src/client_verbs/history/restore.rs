//! `portico rollback` and `portico undelete`: restore past states of objects.

use std::io::Write;

use clap::builder::NonEmptyStringValueParser;
use portico_proto::history::RestoreRequest;

use super::ObjectArgs;
use crate::client_verbs::failure::Failure;
use crate::client_verbs::get::qualified_name;
use crate::client_verbs::outcome::{DEADLINE, Outcome};
use crate::client_verbs::output::{self, Format};
use crate::control_service::ControlService;

/// Restore an object to its content at a past revision
///
/// UID, finalizers, owner references and status do not change; the managers of fields are restored, too. Admission and validation run as
/// for an update. Requires permission for the verbs `history` and `update`.
///
/// Exit codes: 0 restored; 2 not restored.
#[derive(Debug, clap::Args)]
pub(crate) struct Rollback {
    #[command(flatten)]
    change: RestoreArgs,
    /// Revision to restore (`portico history` lists all revisions)
    #[arg(long = "to-revision", value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    revision: i64,
}

/// Create a deleted object again with its last content
///
/// The object gets a new UID. References to owners that no longer exist are removed. Requires permission for the verbs `history` and
/// `create`.
///
/// Exit codes: 0 created; 2 not created.
#[derive(Debug, clap::Args)]
pub(crate) struct Undelete {
    #[command(flatten)]
    change: RestoreArgs,
    /// Revision to restore [default: the last revision before the deletion]
    #[arg(long = "to-revision", value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    revision: Option<i64>,
}

#[derive(Debug, clap::Args)]
struct RestoreArgs {
    #[command(flatten)]
    object: ObjectArgs,
    /// Name of the object
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Validate on the server without writing
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    control: ControlService,
}

/// Restores the content of an object.
pub(crate) async fn rollback(verb: &Rollback) -> Result<Outcome, Failure> {
    restore(&verb.change, verb.revision, "rolled back to").await
}

/// Creates a deleted object again.
pub(crate) async fn undelete(verb: &Undelete) -> Result<Outcome, Failure> {
    restore(&verb.change, verb.revision.unwrap_or_default(), "undeleted from").await
}

async fn restore(verb: &RestoreArgs, revision: i64, action: &str) -> Result<Outcome, Failure> {
    let client = verb.control.client(DEADLINE)?;
    let resource = verb.object.resource(&client).await?;
    let target = Some(verb.object.target(&resource, &verb.name, &verb.control)?);
    let request = RestoreRequest { target, revision, dry_run: verb.dry_run };
    let restored = client.history().restore(request).await?.into_inner();
    for warning in &restored.warnings {
        writeln!(std::io::stderr(), "Warning: {warning}")?;
    }
    let name = format!("{}/{}", qualified_name(&resource), verb.name);
    match verb.output {
        Format::Json | Format::Yaml => output::document(&restored.object, verb.output)?,
        Format::Name => output::lines([name])?,
        Format::Table | Format::Wide => {
            let dry = if verb.dry_run { " (dry run)" } else { "" };
            output::lines([format!("{name} {action} revision {}{dry}", restored.revision)])?;
        }
    }
    Ok(Outcome::Positive)
}
