//! Allocated node ports, for the controller that repairs allocations. The API does not serve the records of ports.

use std::sync::Arc;

use portico_store::{Change, Operation, Precondition, Record, Txn, TxnError};

use super::records;
use portico_registry::Registry;
use portico_registry::Result;
use portico_registry::failure;
use portico_registry::stored_object::{self, StoredObject};

/// A node port allocated to a Service.
#[derive(Clone, Debug)]
pub struct NodePortAllocation {
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
pub struct NodePortAllocations {
    registry: Registry,
}

impl NodePortAllocations {
    /// Returns the allocations in the store of `registry`.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self { registry }
    }

    /// Lists all allocated node ports.
    ///
    /// # Errors
    /// 503 if the store cannot be read.
    pub async fn all(&self) -> Result<Vec<NodePortAllocation>> {
        Ok(records::ports(self.registry.objects()).await?.iter().filter_map(decode_allocation).collect())
    }

    /// Allocates a port to a Service. Returns `false` if the port is already allocated or the Service has changed.
    ///
    /// # Errors
    /// 503 if the store cannot be written.
    pub async fn allocate(&self, port: u16, service: &StoredObject) -> Result<bool> {
        let (key, precondition) = (service.record().key.clone(), Precondition::Revision(service.revision()));
        let unchanged = Operation { key, precondition, change: Change::Check };
        self.commit(vec![unchanged, records::allocate_port(port, service.object())?], service.name()).await
    }

    /// Releases an allocation. Returns `false` if the allocation has changed since it was read.
    ///
    /// # Errors
    /// 503 if the store cannot be written.
    pub async fn release(&self, allocation: &NodePortAllocation) -> Result<bool> {
        let Record { key, revision, value, .. } = Record::clone(&allocation.record);
        let operation =
            Operation { key, precondition: Precondition::Revision(revision), change: Change::Delete(value) };
        self.commit(vec![operation], &allocation.name).await
    }

    async fn commit(&self, operations: Vec<Operation>, service: &str) -> Result<bool> {
        match self.registry.store().commit(vec![Txn { operations }]).await.pop() {
            Some(Ok(_)) => Ok(true),
            // The precondition failed: a concurrent writer was first. The next pass reads the new state.
            None
            | Some(Err(TxnError::Conflict { .. } | TxnError::NotFound { .. } | TxnError::Exists { .. })) => {
                Ok(false)
            }
            Some(Err(error)) => Err(failure::from_txn_error(error, &records::port_resource(), service)),
        }
    }
}

/// Decodes the record of a port. Returns `None` if the record is not named after a port.
fn decode_allocation(record: &Arc<Record>) -> Option<NodePortAllocation> {
    let object = stored_object::decode(record);
    let service = |field| object.at(&["service", field]).str().to_owned();
    let (namespace, name) = (service("namespace"), service("name"));
    Some(NodePortAllocation {
        port: object.name().parse().ok()?,
        namespace,
        name,
        record: Arc::clone(record),
    })
}
