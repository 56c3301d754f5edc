//! Reports about backends that the control services of one store exchange.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use portico_controllers::availability::PeerReport;
use portico_machinery::GroupResource;
use portico_store::{Record, Store};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::explain_sources::AvailabilityController;
use super::server_records::{RENEW_INTERVAL, ServerRecords};

/// Interval at which reports of other control services are read and compared. All reports are in memory.
const EXCHANGE_PERIOD: Duration = Duration::from_secs(1);

/// Exchange of reports about backends.
#[derive(Clone)]
pub(super) struct AvailabilityReports {
    records: ServerRecords,
    identity: String,
    availability: AvailabilityController,
}

impl AvailabilityReports {
    /// Uses the records of a store; `identity` identifies this run of the control service.
    pub(super) fn new(store: &Arc<dyn Store>, identity: &str, availability: AvailabilityController) -> Self {
        let resource = GroupResource::new("portico.dev", "availabilityreports");
        let records = ServerRecords::new(store, resource, "AvailabilityReport");
        Self { records, identity: identity.to_owned(), availability }
    }

    /// Informs the controller that other control services may share the store and disagree about backends. Must be called before
    /// backends are checked.
    pub(super) fn announce(&self) {
        drop(self.availability.exchange_reports(&self.identity, BTreeMap::new()));
    }

    /// Exchanges reports until the future is dropped.
    pub(super) async fn run(&self) {
        let mut ticks = interval(EXCHANGE_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut last_written, mut renewals) = (None::<(PeerReport, Instant)>, HashMap::new());
        loop {
            ticks.tick().await;
            let report = self.availability.exchange_reports(&self.identity, self.peer_reports());
            let is_due = last_written.as_ref().is_none_or(|(_, at)| at.elapsed() >= RENEW_INTERVAL);
            if is_due || last_written.as_ref().is_some_and(|(before, _)| *before != report) {
                let is_written = self.write(&report).await;
                last_written = is_written.then(|| (report, Instant::now()));
            }
            if is_due && last_written.is_some() {
                self.records.remove_expired(Some(&self.identity), &mut renewals).await;
            }
        }
    }

    /// Removes the record of this control service.
    pub(super) async fn release(&self) {
        self.records.release(&self.identity).await;
    }

    fn peer_reports(&self) -> BTreeMap<String, PeerReport> {
        let snapshot = self.records.cached();
        let records = snapshot.iter().flat_map(|snapshot| snapshot.iter());
        let others = records.filter(|record| record.key.name() != self.identity);
        others.map(|record| (record.key.name().to_owned(), report(record))).collect()
    }

    /// Writes the record of this control service. Returns true on success.
    async fn write(&self, report: &PeerReport) -> bool {
        self.records
            .renew(&self.identity, |record| {
                record.set(&["spec", "unreached"], report.unreached.iter().collect::<Vec<_>>());
                record.set(&["spec", "reached"], report.reached.iter().collect::<Vec<_>>());
            })
            .await
    }
}

/// Decodes the report of a control service; empty if a later version wrote it in another format.
fn report(record: &Record) -> PeerReport {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Stored {
        spec: PeerReport,
    }
    serde_json::from_slice::<Stored>(record.value.json()).unwrap_or_default().spec
}
