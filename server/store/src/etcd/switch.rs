//! Stops and resumes the writes of all control services on an etcd, without a running control service.

use futures::future::BoxFuture;

use super::failure::Failure;
use super::gate::{self, Gate};
use super::known::Known;
use super::place::Place;
use super::settings::EtcdSettings;
use super::wire::{Compare, RequestOp, TxnRequest, TxnResponse};
use crate::copy::{CopyError, WriteSwitch};
use crate::read_only;

/// Maximum number of attempts when other processes change the gate concurrently.
const TRIES: usize = 100;

/// Read-only switch of a store in etcd.
pub struct EtcdSwitch(Place);

impl EtcdSwitch {
    /// Opens the switch of a prefix.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn open(settings: &EtcdSettings, known: Known) -> Result<Self, CopyError> {
        Place::open(settings, known).await.map(Self)
    }

    async fn set(&self, reason: Option<&str>) -> Result<i64, CopyError> {
        for _ in 0..TRIES {
            let gate = self.0.gate().await?;
            match (gate, reason) {
                (Gate::Restoring(_), _) => return Err(CopyError::HalfRestored(self.0.name().to_owned())),
                (Gate::Stopped(since), Some(_)) => return Ok(since),
                (Gate::Open, None) => return Ok(self.0.meta().await?.revision),
                _ => {}
            }
            let done = self.change(gate, reason).await.map_err(|failure| self.0.failed(failure))?;
            if done.succeeded {
                return Ok(done.header.unwrap_or_default().revision);
            }
        }
        Err(self.0.store("another process stops or resumes writes at the same time; try again"))
    }

    async fn change(&self, gate: Gate, reason: Option<&str>) -> Result<TxnResponse, Failure> {
        let key = gate::place(&self.0.keys);
        let change = match reason {
            None => RequestOp::delete(key.clone()),
            Some(reason) => {
                let json = read_only::json_of(reason);
                let stored = self.0.values.layout.to_stored(read_only::resource(), &json);
                RequestOp::put(key.clone(), stored.map_err(Failure::Settings)?, 0)
            }
        };
        let compare = vec![Compare::is_at(key, gate.revision())];
        self.0.client.txn(TxnRequest { compare, success: vec![change], failure: Vec::new() }).await
    }
}

impl WriteSwitch for EtcdSwitch {
    fn set_read_only<'a>(&'a self, reason: Option<&'a str>) -> BoxFuture<'a, Result<i64, CopyError>> {
        Box::pin(self.set(reason))
    }
}
