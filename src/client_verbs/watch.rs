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
use super::stages::{state, waiting};
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
struct Seen {
    service: String,
    available: bool,
    reason: String,
    /// Stage at which requests fail, and the reason.
    why: String,
}

/// Prints changes until interrupted, until all APIServices are available (`--until-available`), or until the timeout.
pub(super) async fn run(watch: &Watch) -> Result<Outcome, Failure> {
    let limit = if watch.timeout == 0 { Duration::MAX } else { Duration::from_secs(watch.timeout) };
    let (lost, seen) = (RefCell::default(), RefCell::default());
    if watch.until_available {
        notify(&watch.waits_for());
    }
    match tokio::time::timeout(limit, follow(watch, &lost, &seen)).await {
        Ok(done) => done,
        // The control service does not answer, so the last known state may be out of date.
        Err(_) if !lost.borrow().is_empty() => Err(Failure::Lost(lost.take())),
        Err(_) if watch.until_available => {
            let missing = watch.missing(&seen.borrow());
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

/// Follows changes. Sets `lost` to the reason why the control service does not answer (empty while it answers), and `seen` to
/// the existing APIServices.
async fn follow(
    watch: &Watch,
    lost: &RefCell<String>,
    seen: &RefCell<BTreeMap<String, Seen>>,
) -> Result<Outcome, Failure> {
    let client = watch.control.client(DEADLINE)?;
    let mut live = Live::begin();
    let is_live = live.is_some();
    let report = |status: &Status| {
        let why = describe(status);
        if lost.replace(why.clone()) != why && !is_live {
            notify(&format!("{why}; retrying"));
        }
    };
    let mut events = pin!(watch_api_services_on_retry(client.clone(), WatchRequest::default(), report));
    let begun = Instant::now();
    let mut ticks = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            event = events.try_next() => {
                let Some(event) = event? else { return Ok(Outcome::Positive) };
                lost.take();
                let changed = watch.take(&client, event, seen).await?;
                if let (None, Some(line)) = (&live, changed) {
                    output::lines([line])?;
                }
            }
            _ = ticks.tick() => {}
        }
        if let Some(live) = &mut live {
            let seen = seen.borrow();
            live.draw(&table(&seen), &progress(&seen, begun.elapsed(), &lost.borrow()))?;
        }
        if watch.until_available && watch.all_are_available(&seen.borrow()) {
            return Ok(Outcome::Positive);
        }
    }
}

impl Watch {
    /// Applies an event to `seen`, and returns a line to print if the displayed state has changed.
    async fn take(
        &self,
        client: &Client,
        event: Event,
        seen: &RefCell<BTreeMap<String, Seen>>,
    ) -> Result<Option<String>, Failure> {
        let (kind, Some(object)) = (event.r#type(), event.object) else { return Ok(None) };
        let name = object.metadata.as_ref().map(|metadata| metadata.name.clone()).unwrap_or_default();
        if !self.names.is_empty() && !self.names.contains(&name) {
            return Ok(None);
        }
        if kind == EventType::Deleted {
            seen.borrow_mut().remove(&name);
            return Ok(Some(format!("{name} deleted")));
        }
        let now = look_at(client, &name, &object).await?;
        if seen.borrow().get(&name) == Some(&now) {
            return Ok(None);
        }
        let line = match now.available {
            true => format!("{name} available"),
            false => format!("{name} unavailable: {}", now.why),
        };
        seen.borrow_mut().insert(name, now);
        Ok(Some(line))
    }

    /// Returns a message that names the APIServices for which `--until-available` waits.
    fn waits_for(&self) -> String {
        let names = if self.names.is_empty() { "all APIServices".to_owned() } else { self.names.join(", ") };
        let limit = if self.timeout == 0 { String::new() } else { format!(", timeout {} s", self.timeout) };
        format!("waiting for {names} to become available{limit}")
    }

    /// Returns a text that lists the missing and unavailable APIServices.
    fn missing(&self, seen: &BTreeMap<String, Seen>) -> String {
        let absent = self.names.iter().filter(|name| !seen.contains_key(*name));
        let absent = absent.map(|name| format!("APIService {name} does not exist"));
        let unavailable = seen.iter().filter(|(_, seen)| !seen.available);
        let unavailable = unavailable.map(|(name, _)| format!("{name} is unavailable"));
        let missing: Vec<String> = absent.chain(unavailable).collect();
        if missing.is_empty() { "no APIService exists".to_owned() } else { missing.join(", ") }
    }

    fn all_are_available(&self, seen: &BTreeMap<String, Seen>) -> bool {
        let is_there = |name: &String| seen.contains_key(name);
        !seen.is_empty() && self.names.iter().all(is_there) && seen.values().all(|seen| seen.available)
    }
}

/// Reads the state of an APIService, and the stage at which requests to it fail.
async fn look_at(client: &Client, name: &str, object: &ApiService) -> Result<Seen, Failure> {
    let service = object.spec.as_ref().and_then(|spec| spec.service.as_ref());
    let service = service.map_or_else(
        || "Local".to_owned(),
        |service| format!("{}/{}:{}", service.namespace, service.name, service.port.unwrap_or(443)),
    );
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let condition = conditions.iter().find(|condition| condition.r#type == "Available");
    let available = condition.is_some_and(|condition| condition.status == "True");
    let reason = condition.map(|condition| condition.reason.clone()).unwrap_or_default();
    let mut why = String::new();
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
            why = format!("{}: {}", stage.stage, stage.message);
        }
    }
    Ok(Seen { service, available, reason, why })
}

fn table(seen: &BTreeMap<String, Seen>) -> Table {
    let mut table = Table::new(&["name", "service", "available", "reason", "fails at"]);
    for (name, seen) in seen {
        let available: Cell = match (seen.available, seen.reason.as_str()) {
            (true, _) => state("True", true),
            (false, "") => waiting("Unknown"),
            (false, _) => state("False", false),
        };
        let texts = [seen.reason.clone(), seen.why.clone()].map(Cell::from);
        let mut row = vec![name.clone().into(), seen.service.clone().into(), available];
        row.extend(texts);
        table.rows.push(row);
    }
    table
}

fn progress(seen: &BTreeMap<String, Seen>, elapsed: Duration, lost: &str) -> String {
    let available = seen.values().filter(|seen| seen.available).count();
    let lost = if lost.is_empty() { String::new() } else { format!("; {lost}") };
    format!("{available} of {} available, {} s{lost}", seen.len(), elapsed.as_secs())
}
