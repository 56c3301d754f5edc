//! Stops and resumes the writes of all control services on an etcd, without a running control service.

use futures::future::BoxFuture;

use super::failure::EtcdFailure;
use super::gate::{self, Gate};
use super::object_codec::ObjectCodec;
use super::prefix::EtcdPrefix;
use super::settings::EtcdSettings;
use super::wire::{Compare, RequestOp, TxnRequest, TxnResponse};
use crate::copy::{CopyError, WriteSwitch};
use crate::read_only;

/// Maximum number of attempts when other processes change the gate concurrently.
const MAX_ATTEMPTS: usize = 100;

/// Read-only switch of a store in etcd.
pub struct EtcdSwitch(EtcdPrefix);

impl EtcdSwitch {
    /// Opens the switch of a prefix.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn open(settings: &EtcdSettings, codec: ObjectCodec) -> Result<Self, CopyError> {
        EtcdPrefix::open(settings, codec).await.map(Self)
    }

    async fn set(&self, reason: Option<&str>) -> Result<i64, CopyError> {
        for _ in 0..MAX_ATTEMPTS {
            let gate = self.0.gate().await?;
            match (gate, reason) {
                (Gate::Restoring(_), _) => return Err(CopyError::HalfRestored(self.0.name().to_owned())),
                (Gate::Stopped(revision), Some(_)) => return Ok(revision),
                (Gate::Open, None) => return Ok(self.0.meta().await?.revision),
                _ => {}
            }
            let response = self.change(gate, reason).await.map_err(|failure| self.0.copy_error(failure))?;
            if response.succeeded {
                return Ok(response.header.unwrap_or_default().revision);
            }
        }
        Err(self.0.store_error("another process stops or resumes writes at the same time; try again"))
    }

    async fn change(&self, gate: Gate, reason: Option<&str>) -> Result<TxnResponse, EtcdFailure> {
        let key = gate::gate_key(&self.0.keys);
        let change = match reason {
            None => RequestOp::delete(key.clone()),
            Some(reason) => {
                let json = read_only::record_json(reason);
                let stored = self.0.values.layout.to_stored(read_only::resource(), &json);
                RequestOp::put(key.clone(), stored.map_err(EtcdFailure::Settings)?, 0)
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
