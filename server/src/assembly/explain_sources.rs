//! Facts for Explain from modules that do not depend on each other: probes, facades and conversions.

use portico_controllers::availability::{Availability, HttpProber, Observation, ProbeStage};
use portico_machinery::GroupVersion;
use portico_manifests::FolderState;
use portico_registry::{FailingWebhook, Registry, VersionStatus};
use portico_routes::{ExplainSource, FacadeAck, Manifest, MirrorReport, ReachObservation, ReachStage};

use crate::grpc::config::facades::{Facades, ObservationSink};

/// Controller that checks the availability of backends.
pub(super) type AvailabilityController = Availability<HttpProber>;

/// Sources of the facts that Explain reports.
pub(super) struct ExplainSources {
    pub(super) availability: AvailabilityController,
    pub(super) facades: Facades,
    pub(super) registry: Registry,
    /// State of the folder of manifests, if one is configured.
    pub(super) manifests_state: Option<FolderState>,
}

impl ExplainSource for ExplainSources {
    fn observations(&self, name: &str) -> Vec<ReachObservation> {
        let reached = |o: Observation| ReachObservation {
            observer: o.observer,
            failed_at: o.failed_at.map(stage),
            message: o.message,
            since: o.since,
        };
        self.availability.observations(name).into_iter().map(reached).collect()
    }

    fn acks(&self, name: &str) -> Vec<FacadeAck> {
        self.facades.acks(name)
    }

    fn mirror_reports(&self, name: &str) -> Vec<MirrorReport> {
        self.facades.mirror_reports(name)
    }

    fn definitions(&self, group_version: &GroupVersion) -> Vec<VersionStatus> {
        self.registry.version_statuses(group_version)
    }

    fn failing_conversion_webhooks(&self, group_version: &GroupVersion) -> Vec<FailingWebhook> {
        self.registry.failing_conversion_webhooks(group_version)
    }

    fn manifest(&self, name: &str) -> Option<Manifest> {
        let manifest = self.manifests_state.as_ref()?.api_service(name)?;
        Some(Manifest { from: manifest.origin, error: manifest.error, objects: manifest.objects })
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

impl ObservationSink for ObservationsToAvailability {
    fn observe(&self, facade: &str, api_service: &str, failed_at: Option<ProbeStage>, detail: &str) {
        self.0.on_facade_report(facade, api_service, failed_at, detail);
    }

    fn forget(&self, facade: &str) {
        self.0.forget_facade(facade);
    }
}
