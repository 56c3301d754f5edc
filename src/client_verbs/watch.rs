//! `portico watch`: shows changes in the availability of APIServices.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use portico_proto::apiregistration::{ApiService, EventType, ExplainRequest, WatchRequest};
use portico_proto::client::{Client, Event, Retry, watch_api_services_on_retry};
use tonic::{Code, Status};

use super::failure::Failure;
use super::live::Live;
use super::outcome::{DEADLINE, Outcome};
use super::output;
use super::stages::{pending_state_cell, state_cell};
use super::table::{Cell, Table};
use crate::control_service::{ControlService, describe};

/// Interval at which the table on a terminal is redrawn.
const TICK: Duration = Duration::from_secs(1);

/// Watch APIServices, or wait until they are available
///
/// Shows a table that is updated in place if standard output is a terminal, and otherwise prints one line per change. While the control
/// service does not answer, the command retries and shows the reason.
///
/// Exit codes: 0 all APIServices are available, or the timeout ended a watch without --until-available; 1 --until-available timed out;
/// 2 the control service does not answer.
#[derive(Debug, clap::Args)]
pub(crate) struct Watch {
    /// Names of the APIServices to watch [default: all]
    names: Vec<String>,
    /// Exit once all watched APIServices exist and are available
    #[arg(long)]
    until_available: bool,
    /// Exit after this number of seconds; 0 means no timeout
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    timeout: u64,
    #[command(flatten)]
    control: ControlService,
}

/// Displayed state of an APIService.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ApiServiceState {
    service: String,
    available: bool,
    reason: String,
    /// Stage at which requests fail, and the reason.
    failure: String,
}

/// Prints changes until interrupted, until all APIServices are available (`--until-available`), or until the timeout.
pub(super) async fn run(watch: &Watch) -> Result<Outcome, Failure> {
    let limit = if watch.timeout == 0 { Duration::MAX } else { Duration::from_secs(watch.timeout) };
    let (lost_reason, states) = (RefCell::default(), RefCell::default());
    if watch.until_available {
        notify(&watch.wait_message());
    }
    match tokio::time::timeout(limit, follow(watch, &lost_reason, &states)).await {
        Ok(outcome) => outcome,
        // The control service does not answer, so the last known state may be out of date.
        Err(_) if !lost_reason.borrow().is_empty() => Err(Failure::Lost(lost_reason.take())),
        Err(_) if watch.until_available => {
            let missing = watch.missing_message(&states.borrow());
            notify(&format!("timed out after {} s: {missing}", watch.timeout));
            Ok(Outcome::Negative)
        }
        Err(_) => Ok(Outcome::Positive),
    }
}

/// Prints progress to standard error. Write errors are ignored.
fn notify(text: &str) {
    let _ = writeln!(std::io::stderr(), "portico: watch: {text}");
}

/// Follows changes. Sets `lost_reason` to the reason why the control service does not answer (empty while it answers),
/// and `states` to the states of the existing APIServices.
async fn follow(
    watch: &Watch,
    lost_reason: &RefCell<String>,
    states: &RefCell<BTreeMap<String, ApiServiceState>>,
) -> Result<Outcome, Failure> {
    let client = watch.control.client(DEADLINE)?;
    let mut live = Live::begin();
    let is_live = live.is_some();
    let report = |status: &Status| {
        let reason = describe(status);
        if lost_reason.replace(reason.clone()) != reason && !is_live {
            notify(&format!("{reason}; retrying"));
        }
    };
    let mut events = pin!(watch_api_services_on_retry(client.clone(), WatchRequest::default(), report));
    let start = Instant::now();
    let mut ticks = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            event = events.try_next() => {
                let Some(event) = event? else { return Ok(Outcome::Positive) };
                lost_reason.take();
                let changed = watch.apply_event(&client, event, states).await?;
                if let (None, Some(line)) = (&live, changed) {
                    output::lines([line])?;
                }
            }
            _ = ticks.tick() => {}
        }
        if let Some(live) = &mut live {
            let states = states.borrow();
            live.draw(
                &states_table(&states),
                &progress_line(&states, start.elapsed(), &lost_reason.borrow()),
            )?;
        }
        if watch.until_available && watch.all_are_available(&states.borrow()) {
            return Ok(Outcome::Positive);
        }
    }
}

impl Watch {
    /// Applies an event to `states`, and returns a line to print if the displayed state has changed.
    async fn apply_event(
        &self,
        client: &Client,
        event: Event,
        states: &RefCell<BTreeMap<String, ApiServiceState>>,
    ) -> Result<Option<String>, Failure> {
        let (kind, Some(object)) = (event.r#type(), event.object) else { return Ok(None) };
        let name = object.metadata.as_ref().map(|metadata| metadata.name.clone()).unwrap_or_default();
        if !self.names.is_empty() && !self.names.contains(&name) {
            return Ok(None);
        }
        if kind == EventType::Deleted {
            states.borrow_mut().remove(&name);
            return Ok(Some(format!("{name} deleted")));
        }
        let current = read_state(client, &name, &object).await?;
        if states.borrow().get(&name) == Some(&current) {
            return Ok(None);
        }
        let line = match current.available {
            true => format!("{name} available"),
            false => format!("{name} unavailable: {}", current.failure),
        };
        states.borrow_mut().insert(name, current);
        Ok(Some(line))
    }

    /// Returns a message that names the APIServices for which `--until-available` waits.
    fn wait_message(&self) -> String {
        let names = if self.names.is_empty() { "all APIServices".to_owned() } else { self.names.join(", ") };
        let limit = if self.timeout == 0 { String::new() } else { format!(", timeout {} s", self.timeout) };
        format!("waiting for {names} to become available{limit}")
    }

    /// Returns a text that lists the missing and unavailable APIServices.
    fn missing_message(&self, states: &BTreeMap<String, ApiServiceState>) -> String {
        let absent = self.names.iter().filter(|name| !states.contains_key(*name));
        let absent = absent.map(|name| format!("APIService {name} does not exist"));
        let unavailable = states.iter().filter(|(_, api_service)| !api_service.available);
        let unavailable = unavailable.map(|(name, _)| format!("{name} is unavailable"));
        let missing: Vec<String> = absent.chain(unavailable).collect();
        if missing.is_empty() { "no APIService exists".to_owned() } else { missing.join(", ") }
    }

    fn all_are_available(&self, states: &BTreeMap<String, ApiServiceState>) -> bool {
        let exists = |name: &String| states.contains_key(name);
        !states.is_empty()
            && self.names.iter().all(exists)
            && states.values().all(|api_service| api_service.available)
    }
}

/// Reads the state of an APIService, and the stage at which requests to it fail.
async fn read_state(client: &Client, name: &str, object: &ApiService) -> Result<ApiServiceState, Failure> {
    let service = object.spec.as_ref().and_then(|spec| spec.service.as_ref());
    let service = service.map_or_else(
        || "Local".to_owned(),
        |service| format!("{}/{}:{}", service.namespace, service.name, service.port.unwrap_or(443)),
    );
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let condition = conditions.iter().find(|condition| condition.r#type == "Available");
    let available = condition.is_some_and(|condition| condition.status == "True");
    let reason = condition.map(|condition| condition.reason.clone()).unwrap_or_default();
    let mut failure = String::new();
    if !available {
        let request = || ExplainRequest { name: name.to_owned() };
        let explain = async || client.api_services().explain(request()).await;
        let stages = match Retry::default().run(explain).await {
            Ok(response) => response.into_inner().stages,
            // The APIService was deleted after this event; a deletion event follows.
            Err(status) if status.code() == Code::NotFound => Vec::new(),
            Err(status) => return Err(status.into()),
        };
        if let Some(stage) = stages.into_iter().find(|stage| !stage.ok) {
            failure = format!("{}: {}", stage.stage, stage.message);
        }
    }
    Ok(ApiServiceState { service, available, reason, failure })
}

fn states_table(states: &BTreeMap<String, ApiServiceState>) -> Table {
    let mut table = Table::new(&["name", "service", "available", "reason", "fails at"]);
    for (name, api_service) in states {
        let available: Cell = match (api_service.available, api_service.reason.as_str()) {
            (true, _) => state_cell("True", true),
            (false, "") => pending_state_cell("Unknown"),
            (false, _) => state_cell("False", false),
        };
        let texts = [api_service.reason.clone(), api_service.failure.clone()].map(Cell::from);
        let mut row = vec![name.clone().into(), api_service.service.clone().into(), available];
        row.extend(texts);
        table.rows.push(row);
    }
    table
}

fn progress_line(states: &BTreeMap<String, ApiServiceState>, elapsed: Duration, lost_reason: &str) -> String {
    let available = states.values().filter(|api_service| api_service.available).count();
    let suffix = if lost_reason.is_empty() { String::new() } else { format!("; {lost_reason}") };
    format!("{available} of {} available, {} s{suffix}", states.len(), elapsed.as_secs())
}
