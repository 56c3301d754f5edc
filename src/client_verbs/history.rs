//! `portico history`: shows past states of an object, or the objects that existed at a past time.

mod diff;
mod objects;
mod point_in_time;
mod restore;

pub(super) use diff::{Diff, run as diff};
pub(super) use restore::{Rollback, Undelete, rollback, undelete};

use std::io::Write;

use clap::builder::NonEmptyStringValueParser;
use jiff::Timestamp;
use portico_proto::client::Client;
use portico_proto::history::list_request::At;
use portico_proto::history::{Change, State, StatesRequest, StatesResponse, Target};
use portico_proto::objects::Resource;
use serde::Serialize;
use serde_json::value::RawValue;

use super::failure::Failure;
use super::get::{find_resources, several_resources};
use super::namespace::Namespace;
use super::outcome::{DEADLINE, Outcome};
use super::output::{self, Format};
use super::table::Table;
use crate::control_service::ControlService;

/// Show past states of an object, or the objects that existed at a past time
///
/// States before a deletion are included. --history-retention of the control service sets how long states are kept.
///
/// Requires permission for the verb `history` on the resource.
///
/// Exit codes: 0 shown, even if there are no states or objects; 2 not shown.
#[derive(Debug, clap::Args)]
pub(crate) struct History {
    #[command(flatten)]
    object: ObjectArgs,
    /// Name of the object; optional with --at
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// With --at: show objects of all namespaces
    #[arg(long, short = 'A', requires = "at")]
    all_namespaces: bool,
    /// Show the objects at a revision, at a time (2026-01-31T12:00:00Z), or at a time before now (15m)
    #[arg(long, value_name = "WHEN", value_parser = point_in_time::parse)]
    at: Option<At>,
    /// Show at most N states, newest first
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "at", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    control: ControlService,
}

/// Arguments that name a resource and a namespace.
#[derive(Debug, clap::Args)]
pub(super) struct ObjectArgs {
    /// Resource: plural, singular, short name or kind, with the group if ambiguous (`deployments.apps`)
    resource: String,
    #[command(flatten)]
    namespace: Namespace,
}

impl ObjectArgs {
    /// Looks up the resource in its preferred version.
    async fn resource(&self, client: &Client) -> Result<Resource, Failure> {
        let mut resources = find_resources(client, &self.resource).await?;
        match (resources.pop(), resources.is_empty()) {
            (Some(resource), true) => Ok(resource),
            _ => Err(several_resources(&self.resource)),
        }
    }

    /// Returns the target of a request: the named object, or all objects of the resource if `name` is empty.
    fn target(&self, resource: &Resource, name: &str, control: &ControlService) -> Result<Target, Failure> {
        Ok(Target {
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.resource.clone(),
            namespace: if resource.namespaced { self.namespace.resolve(control)? } else { String::new() },
            name: name.to_owned(),
        })
    }
}

/// Output of `portico history` as JSON or YAML.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HistoryOutput {
    /// States of the object, newest first.
    states: Vec<StateOutput>,
    /// True if older states exist, which a higher `--limit` shows.
    more: bool,
    /// Revision since which no state has been dropped.
    complete_from: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateOutput {
    revision: i64,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<Timestamp>,
    manager: String,
    uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    unreadable: String,
}

/// Prints the states of an object, or the objects at a past time.
pub(super) async fn run(history: &History) -> Result<Outcome, Failure> {
    let client = history.control.client(DEADLINE)?;
    let resource = history.object.resource(&client).await?;
    match (&history.name, history.at) {
        (name, Some(at)) => history.print_objects(&client, &resource, name.as_deref(), at).await?,
        (Some(name), None) => history.print_states(&client, &resource, name).await?,
        (None, None) => {
            return Err(Failure::Hinted(
                "the name of an object is missing".to_owned(),
                "--at WHEN shows all objects of a time",
            ));
        }
    }
    Ok(Outcome::Positive)
}

/// Reads up to `limit` states of an object, newest first.
async fn states(
    client: &Client,
    target: &Target,
    limit: u32,
    objects: bool,
) -> Result<StatesResponse, Failure> {
    let (mut all, mut before) = (StatesResponse::default(), 0);
    loop {
        let remaining = limit.saturating_sub(u32::try_from(all.states.len()).unwrap_or(u32::MAX));
        let request = StatesRequest { target: Some(target.clone()), before, limit: remaining, objects };
        let page = client.history().states(request).await?.into_inner();
        (all.more, all.complete_from, all.revision) = (page.more, page.complete_from, page.revision);
        all.states.extend(page.states);
        before = all.states.last().map_or(0, |state| state.revision);
        if !all.more || before == 0 || all.states.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            return Ok(all);
        }
    }
}

impl History {
    async fn print_states(&self, client: &Client, resource: &Resource, name: &str) -> Result<(), Failure> {
        let target = self.object.target(resource, name, &self.control)?;
        let with_objects = matches!(self.output, Format::Json | Format::Yaml);
        let response = states(client, &target, self.limit, with_objects).await?;
        let is_empty = response.states.is_empty();
        match self.output {
            Format::Json | Format::Yaml => {
                let states = response.states.into_iter().map(state_output).collect::<Result<_, _>>()?;
                let (more, complete_from) = (response.more, response.complete_from);
                output::value(&HistoryOutput { states, more, complete_from }, self.output)?;
            }
            Format::Name => output::lines(response.states.iter().map(|state| state.revision.to_string()))?,
            Format::Table | Format::Wide => {
                output::lines(states_table(&response.states, self.output == Format::Wide).lines(None))?;
            }
        }
        if response.more {
            writeln!(std::io::stderr(), "Older states exist: --limit shows more")?;
        }
        if is_empty {
            writeln!(std::io::stderr(), "No states of {name:?} are kept")?;
        }
        Ok(())
    }
}

fn parse_raw(json: &[u8]) -> Result<Box<RawValue>, serde_json::Error> {
    serde_json::from_slice(json)
}

fn state_output(state: State) -> Result<StateOutput, Failure> {
    let change = change_name(&state);
    let State { revision, written, uid, manager, object, unreadable, .. } = state;
    let object = if object.is_empty() { None } else { Some(parse_raw(&object)?) };
    Ok(StateOutput { revision, change, written: written_at(written), manager, uid, object, unreadable })
}

fn change_name(state: &State) -> &'static str {
    match state.change() {
        Change::Created => "Created",
        Change::Updated => "Updated",
        Change::Deleted => "Deleted",
        Change::Unspecified => "Unknown",
    }
}

fn written_at(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(seconds).ok().filter(|_| seconds > 0)
}

fn states_table(states: &[State], wide: bool) -> Table {
    let headers = ["revision", "written", "change", "manager", "uid"];
    let mut table = Table::new(&headers[..if wide { 5 } else { 4 }]);
    for state in states {
        let written =
            written_at(state.written).map_or_else(|| "<unknown>".to_owned(), |time| time.to_string());
        let manager = if state.unreadable.is_empty() { &*state.manager } else { "<unreadable>" };
        let mut row = vec![
            state.revision.to_string().into(),
            written.into(),
            change_name(state).into(),
            manager.into(),
        ];
        if wide {
            row.push(state.uid.as_str().into());
        }
        table.rows.push(row);
    }
    table
}
