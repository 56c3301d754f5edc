//! `portico rollback` and `portico undelete`: the way back to a past state.

use std::io::Write;

use clap::builder::NonEmptyStringValueParser;
use portico_proto::history::RestoreRequest;

use super::Named;
use crate::client_verbs::failure::Failure;
use crate::client_verbs::get::qualified;
use crate::client_verbs::outcome::{DEADLINE, Ending};
use crate::client_verbs::output::{self, Format};
use crate::control_service::ControlService;

/// Give an object the content that it had at a revision
///
/// Its identity, finalizers and owners stay as they are now, and so does what only a subresource writes (status); fields get back the
/// managers that they had. Admission and validation see an update. Needs the verbs `history` and `update`.
#[derive(Debug, clap::Args)]
pub(crate) struct Rollback {
    #[command(flatten)]
    change: Restoring,
    /// The revision, as `portico history` shows it.
    #[arg(long = "to-revision", value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    revision: i64,
}

/// Create a deleted object again, as it was before its deletion began
///
/// It is a new object, with another uid; owners that are gone are not named any more. Needs the verbs `history` and `create`.
#[derive(Debug, clap::Args)]
pub(crate) struct Undelete {
    #[command(flatten)]
    change: Restoring,
    /// As it was at this revision; without it as it was last.
    #[arg(long = "to-revision", value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    revision: Option<i64>,
}

#[derive(Debug, clap::Args)]
struct Restoring {
    #[command(flatten)]
    object: Named,
    /// The object.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Have everything checked, write nothing.
    #[arg(long)]
    dry_run: bool,
    /// What is printed of the object.
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    control: ControlService,
}

/// Rolls back.
pub(crate) async fn rollback(verb: &Rollback) -> Result<Ending, Failure> {
    restore(&verb.change, verb.revision, "rolled back to").await
}

/// Undeletes.
pub(crate) async fn undelete(verb: &Undelete) -> Result<Ending, Failure> {
    restore(&verb.change, verb.revision.unwrap_or_default(), "undeleted from").await
}

async fn restore(verb: &Restoring, revision: i64, done: &str) -> Result<Ending, Failure> {
    let client = verb.control.client(DEADLINE)?;
    let resource = verb.object.resource(&client).await?;
    let target = Some(verb.object.target(&resource, &verb.name, &verb.control)?);
    let request = RestoreRequest { target, revision, dry_run: verb.dry_run };
    let restored = client.history().restore(request).await?.into_inner();
    for warning in &restored.warnings {
        writeln!(std::io::stderr(), "Warning: {warning}")?;
    }
    let name = format!("{}/{}", qualified(&resource), verb.name);
    match verb.output {
        Format::Json | Format::Yaml => output::document(&restored.object, verb.output)?,
        Format::Name => output::lines([name])?,
        Format::Table | Format::Wide => {
            let dry = if verb.dry_run { " (dry run)" } else { "" };
            output::lines([format!("{name} {done} revision {}{dry}", restored.revision)])?;
        }
    }
    Ok(Ending::Well)
}
