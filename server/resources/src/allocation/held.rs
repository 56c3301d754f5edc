//! Allocated node ports, for the controller that repairs allocations. The API does not serve the records of ports.

use std::sync::Arc;

use portico_store::{Change, Expect, Operation, Record, Txn, TxnError};

use super::records;
use portico_registry::Registry;
use portico_registry::Result;
use portico_registry::failure;
use portico_registry::stored::{self, Stored};

/// A node port allocated to a Service.
#[derive(Clone, Debug)]
pub struct HeldPort {
    /// Port number.
    pub port: u16,
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    record: Arc<Record>,
}

/// Node port allocations in the store of a registry.
#[derive(Clone)]
pub struct NodePorts {
    registry: Registry,
}

impl NodePorts {
    /// Returns the allocations in the store of `registry`.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self { registry }
    }

    /// Lists all allocated node ports.
    ///
    /// # Errors
    /// 503 if the store cannot be read.
    pub async fn all(&self) -> Result<Vec<HeldPort>> {
        Ok(records::ports(self.registry.objects()).await?.iter().filter_map(held).collect())
    }

    /// Allocates a port to a Service. Returns `false` if the port is already allocated or the Service has changed.
    ///
    /// # Errors
    /// 503 if the store cannot be written.
    pub async fn hold(&self, port: u16, service: &Stored) -> Result<bool> {
        let (key, expect) = (service.record().key.clone(), Expect::Revision(service.revision()));
        let unchanged = Operation { key, expect, change: Change::Check };
        self.settle(vec![unchanged, records::take_port(port, service.object())?], service.name()).await
    }

    /// Releases an allocation. Returns `false` if the allocation has changed since it was read.
    ///
    /// # Errors
    /// 503 if the store cannot be written.
    pub async fn release(&self, held: &HeldPort) -> Result<bool> {
        let Record { key, revision, value, .. } = Record::clone(&held.record);
        let operation = Operation { key, expect: Expect::Revision(revision), change: Change::Delete(value) };
        self.settle(vec![operation], &held.name).await
    }

    async fn settle(&self, operations: Vec<Operation>, service: &str) -> Result<bool> {
        match self.registry.store().commit(vec![Txn { operations }]).await.pop() {
            Some(Ok(_)) => Ok(true),
            // The precondition failed: a concurrent writer was first. The next pass reads the new state.
            None
            | Some(Err(TxnError::Conflict { .. } | TxnError::NotFound { .. } | TxnError::Exists { .. })) => {
                Ok(false)
            }
            Some(Err(error)) => Err(failure::of_txn(error, &records::port_resource(), service)),
        }
    }
}

/// Decodes the record of a port. Returns `None` if the record is not named after a port.
fn held(record: &Arc<Record>) -> Option<HeldPort> {
    let object = stored::decode(record);
    let service = |field| object.at(&["service", field]).str().to_owned();
    let (namespace, name) = (service("namespace"), service("name"));
    Some(HeldPort { port: object.name().parse().ok()?, namespace, name, record: Arc::clone(record) })
}
