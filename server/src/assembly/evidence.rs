//! What Explain knows from rooms that do not know each other: probes, facades and conversions.

use std::sync::Arc;

use portico_controllers::availability::{Availability, HttpProber, ProbeStage};
use portico_machinery::GroupVersion;
use portico_registry::{Registry, Standing, Trouble};
use portico_routes::{Ack, Evidence, ReachStage, Reached};

use crate::grpc::config::facades::{Facades, Hints};

/// The controller that judges availability.
pub(super) type Judge = Availability<HttpProber>;

/// All of them together.
pub(super) struct Seen {
    pub(super) judge: Judge,
    pub(super) facades: Facades,
    pub(super) registry: Registry,
}

impl Evidence for Seen {
    fn reached(&self, name: &str) -> Vec<Reached> {
        let own = self.judge.observations(name).into_iter().filter(|o| o.seen_by == "control");
        let own = own.map(|o| Reached {
            failed_at: if o.ok { None } else { Some(o.failed_at.map_or(ReachStage::Dial, stage)) },
            seen_by: o.seen_by,
            message: o.message,
            since: o.since,
        });
        // Facades tell the stage, too; the judge keeps only whether they get through.
        own.chain(self.facades.reached(name)).collect()
    }

    fn acks(&self, name: &str) -> Vec<Ack> {
        self.facades.acks(name)
    }

    fn definitions(&self, group_version: &GroupVersion) -> Vec<Standing> {
        self.registry.standings(group_version)
    }

    fn conversions(&self, group_version: &GroupVersion) -> Vec<Trouble> {
        self.registry.conversion_troubles(group_version)
    }
}

fn stage(stage: ProbeStage) -> ReachStage {
    match stage {
        ProbeStage::Dial => ReachStage::Dial,
        ProbeStage::Tls => ReachStage::Tls,
        ProbeStage::Http | ProbeStage::Status => ReachStage::Http,
    }
}

/// Facades' words on their way to the judge.
pub(super) struct ToJudge(pub(super) Judge);

impl Hints for ToJudge {
    fn hint(&self, facade: &str, api_service: &str, reachable: bool, detail: &str) {
        self.0.hint(facade, api_service, reachable, detail);
    }

    fn forget(&self, facade: &str) {
        self.0.forget_facade(facade);
    }
}

impl Seen {
    /// As the services take it.
    pub(super) fn shared(
        judge: Judge,
        facades: Facades,
        registry: Registry,
    ) -> Arc<dyn Evidence + Send + Sync> {
        Arc::new(Self { judge, facades, registry })
    }
}
