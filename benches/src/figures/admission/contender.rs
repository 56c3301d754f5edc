//! A measured server, and creations on it.

use std::time::Duration;

use http::Method;

use crate::figures::objects::{COLLECTION, config_map};
use crate::https::Endpoint;
use crate::kube::Kube;
use crate::load::{Load, drive};
use crate::portico::Portico;
use crate::process::Process;
use crate::report::Goal;
use crate::webhook::Webhook;
use crate::{BenchContext, Failure};

const PORTICO: &str = "portico";

/// A server, and the webhook that it calls.
pub(super) struct Contender<'a> {
    pub(super) name: &'static str,
    pub(super) endpoint: Endpoint,
    pub(super) webhook: Webhook,
    processes: Vec<&'a Process>,
}

/// A load, and the server's processor time per request in microseconds.
pub(super) struct Measured {
    pub(super) load: Load,
    pub(super) micros: f64,
}

impl<'a> Contender<'a> {
    pub(super) fn portico(setting: &BenchContext, portico: &'a Portico) -> Result<Self, Failure> {
        Self::new(setting, PORTICO, portico.endpoint(setting)?, vec![&portico.process])
    }

    pub(super) fn baseline(setting: &BenchContext, portico: &'a Portico) -> Result<Self, Failure> {
        Self::new(setting, "baseline", portico.endpoint(setting)?, vec![&portico.process])
    }

    pub(super) fn kube(setting: &BenchContext, kube: &'a Kube) -> Result<Self, Failure> {
        Self::new(setting, "kube-apiserver", kube.endpoint(setting)?, vec![&kube.server, &kube.etcd])
    }

    fn new(
        setting: &BenchContext,
        name: &'static str,
        endpoint: Endpoint,
        processes: Vec<&'a Process>,
    ) -> Result<Self, Failure> {
        let webhook = Webhook::start(&setting.certificates)?;
        Ok(Self { name, endpoint, webhook, processes })
    }

    /// Returns the goal for Portico, and none for other servers.
    pub(super) fn goal(&self, goal: Goal) -> Goal {
        if self.name == PORTICO { goal } else { Goal::None }
    }

    /// Returns the resident memory of the API server in MiB.
    pub(super) fn resident(&self) -> Result<f64, Failure> {
        self.processes.first().map_or(Ok(0.0), |server| server.resident())
    }

    /// Creates objects with this many clients; `prefix` must be new.
    pub(super) async fn create(
        &self,
        setting: &BenchContext,
        prefix: String,
        clients: usize,
    ) -> Result<Measured, Failure> {
        let time = Duration::from_secs(setting.options.seconds);
        let (before, maker) = (self.processor_time()?, self.endpoint.clone());
        let posts = drive(&self.endpoint, clients, time, move |client, sent| {
            maker.json(Method::POST, COLLECTION, config_map(&format!("{prefix}-{client}-{sent}"), 'p'))
        });
        let load = posts.await?.require_success("POST")?;
        let micros = (self.processor_time()? - before).as_secs_f64() * 1e6 / load.response_count();
        Ok(Measured { load, micros })
    }

    fn processor_time(&self) -> Result<Duration, Failure> {
        self.processes.iter().map(|process| process.processor_time()).sum()
    }
}
