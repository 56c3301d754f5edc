//! `portico diff`: shows the difference between two states of an object.

use clap::builder::NonEmptyStringValueParser;
use portico_proto::history::{State, StatesResponse, Target};
use similar::TextDiff;

use super::{ObjectArgs, states};
use crate::client_verbs::failure::Failure;
use crate::client_verbs::outcome::{DEADLINE, Outcome};
use crate::client_verbs::output;
use crate::control_service::ControlService;

/// Number of context lines around a difference.
const CONTEXT: usize = 3;
/// Maximum number of states to search.
const MAX_STATES: u32 = 10_000;

/// Show the difference between two states of an object
///
/// Compares the states as YAML, without managed fields and resourceVersion. Without --from and --to, shows what the last write changed.
///
/// Exit codes: 0 the states are equal; 1 the states differ; 2 not compared.
#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    object: ObjectArgs,
    /// Name of the object
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Revision of the earlier state [default: the state before --to]
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    from: Option<i64>,
    /// Revision of the later state [default: the last state]
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    to: Option<i64>,
    #[command(flatten)]
    control: ControlService,
}

/// Prints the difference between two states.
pub(crate) async fn run(diff: &Diff) -> Result<Outcome, Failure> {
    let client = diff.control.client(DEADLINE)?;
    let resource = diff.object.resource(&client).await?;
    let target = diff.object.target(&resource, &diff.name, &diff.control)?;
    // Selecting the two states needs only their revisions, not the objects.
    let StatesResponse { states: past_states, revision, .. } =
        states(&client, &target, MAX_STATES, false).await?;
    // A control service of an earlier release does not report its revision, which is then 0.
    if let Some(requested) = diff.from.max(diff.to).filter(|requested| *requested > revision && revision > 0)
    {
        return Err(Failure::Usage(format!(
            "revision {requested} does not exist yet: the last one is {revision}"
        )));
    }
    let later = past_states.iter().find(|state| diff.to.is_none_or(|to| state.revision <= to));
    let later = later.ok_or_else(|| missing_state(&target, diff.to))?;
    let earlier_revision = diff.from.unwrap_or(later.revision - 1);
    let earlier = past_states.iter().find(|state| state.revision <= earlier_revision);
    if earlier.is_none() && diff.from.is_some() {
        return Err(missing_state(&target, diff.from));
    }
    let earlier_text = match earlier {
        Some(state) => text(&client, &target, state).await?,
        None => String::new(),
    };
    let later_text = text(&client, &target, later).await?;
    if earlier_text == later_text {
        return Ok(Outcome::Positive);
    }
    let difference = TextDiff::from_lines(&earlier_text, &later_text);
    let mut unified = difference.unified_diff();
    let unified = unified.context_radius(CONTEXT).header(&state_name(earlier), &state_name(Some(later)));
    output::lines(unified.to_string().lines())?;
    Ok(Outcome::Negative)
}

fn missing_state(target: &Target, revision: Option<i64>) -> Failure {
    let suffix = revision.map(|revision| format!(" of revision {revision}")).unwrap_or_default();
    Failure::Usage(format!("no state of {} {:?}{suffix} is kept", target.resource, target.name))
}

fn state_name(state: Option<&State>) -> String {
    match state {
        None => "none".to_owned(),
        Some(state) if state.change() == portico_proto::history::Change::Deleted => {
            format!("revision {} (deleted)", state.revision)
        }
        Some(state) => format!("revision {}", state.revision),
    }
}

/// Returns a state as YAML without the fields that every write changes, or an empty text for a deletion.
async fn text(
    client: &portico_proto::client::Client,
    target: &Target,
    state: &State,
) -> Result<String, Failure> {
    if state.change() == portico_proto::history::Change::Deleted {
        return Ok(String::new());
    }
    let request = portico_proto::history::StatesRequest {
        target: Some(target.clone()),
        before: state.revision + 1,
        limit: 1,
        objects: true,
    };
    let past_state = client.history().states(request).await?.into_inner().states.pop().unwrap_or_default();
    let mut object = portico_machinery::Object::from_json(&past_state.object)
        .map_err(|_| Failure::Usage(format!("revision {}: {}", state.revision, past_state.unreadable)))?;
    object.remove(&["metadata", "managedFields"]);
    object.remove(&["metadata", "resourceVersion"]);
    let yaml = portico_facade::yaml(&object.to_json())
        .ok_or_else(|| Failure::Usage(format!("revision {}: the state is not valid JSON", state.revision)))?;
    Ok(String::from_utf8_lossy(&yaml).into_owned())
}
