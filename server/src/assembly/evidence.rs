//! Facts for Explain from modules that do not depend on each other: probes, facades and conversions.

use portico_controllers::availability::{Availability, HttpProber, Observation, ProbeStage};
use portico_machinery::GroupVersion;
use portico_manifests::State;
use portico_registry::{FailingWebhook, Registry, VersionStatus};
use portico_routes::{Ack, Evidence, Manifest, Mirrored, ReachStage, Reached};

use crate::grpc::config::facades::{Facades, Hints};

/// Controller that checks the availability of backends.
pub(super) type AvailabilityController = Availability<HttpProber>;

/// Sources of the facts that Explain reports.
pub(super) struct Seen {
    pub(super) availability: AvailabilityController,
    pub(super) facades: Facades,
    pub(super) registry: Registry,
    /// State of the folder of manifests, if one is configured.
    pub(super) from_folder: Option<State>,
}

impl Evidence for Seen {
    fn reached(&self, name: &str) -> Vec<Reached> {
        let reached = |o: Observation| Reached {
            seen_by: o.seen_by,
            failed_at: o.failed_at.map(stage),
            message: o.message,
            since: o.since,
        };
        self.availability.observations(name).into_iter().map(reached).collect()
    }

    fn acks(&self, name: &str) -> Vec<Ack> {
        self.facades.acks(name)
    }

    fn mirrored(&self, name: &str) -> Vec<Mirrored> {
        self.facades.mirrored(name)
    }

    fn definitions(&self, group_version: &GroupVersion) -> Vec<VersionStatus> {
        self.registry.version_statuses(group_version)
    }

    fn conversions(&self, group_version: &GroupVersion) -> Vec<FailingWebhook> {
        self.registry.failing_conversion_webhooks(group_version)
    }

    fn manifest(&self, name: &str) -> Option<Manifest> {
        let manifest = self.from_folder.as_ref()?.api_service(name)?;
        Some(Manifest { from: manifest.from, error: manifest.error, objects: manifest.objects })
    }
}

fn stage(stage: ProbeStage) -> ReachStage {
    match stage {
        ProbeStage::Dial => ReachStage::Dial,
        ProbeStage::Tls => ReachStage::Tls,
        ProbeStage::Http | ProbeStage::Status => ReachStage::Http,
    }
}

/// Passes observations of facades to the availability controller.
pub(super) struct ObservationsToAvailability(pub(super) AvailabilityController);

impl Hints for ObservationsToAvailability {
    fn hint(&self, facade: &str, api_service: &str, failed_at: Option<ProbeStage>, detail: &str) {
        self.0.hint(facade, api_service, failed_at, detail);
    }

    fn forget(&self, facade: &str) {
        self.0.forget_facade(facade);
    }
}
