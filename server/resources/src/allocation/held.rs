//! Node ports in use, for who keeps them right: nobody serves their records, so this is the only way to them.

use std::sync::Arc;

use portico_store::{Change, Expect, Operation, Record, Txn, TxnError};

use super::records;
use portico_registry::Registry;
use portico_registry::Result;
use portico_registry::failure;
use portico_registry::stored::{self, Stored};

/// A node port that is in use, and by which Service.
#[derive(Clone, Debug)]
pub struct HeldPort {
    /// The port.
    pub port: u16,
    /// The Service's namespace.
    pub namespace: String,
    /// The Service's name.
    pub name: String,
    record: Arc<Record>,
}

/// The node ports in use.
#[derive(Clone)]
pub struct NodePorts {
    registry: Registry,
}

impl NodePorts {
    /// The node ports that this registry's Services use.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self { registry }
    }

    /// The node ports in use.
    ///
    /// # Errors
    /// 503 when the store cannot be read.
    pub async fn all(&self) -> Result<Vec<HeldPort>> {
        Ok(records::ports(self.registry.objects()).await?.iter().filter_map(held).collect())
    }

    /// Puts a port down as this Service's, unless somebody has it or the Service has changed; whether it did.
    ///
    /// # Errors
    /// 503 when the store cannot be written.
    pub async fn hold(&self, port: u16, service: &Stored) -> Result<bool> {
        let (key, expect) = (service.record().key.clone(), Expect::Revision(service.revision()));
        let unchanged = Operation { key, expect, change: Change::Check };
        self.settle(vec![unchanged, records::take_port(port, service.object())?], service.name()).await
    }

    /// Gives back a port that is in use as it was read; whether it was.
    ///
    /// # Errors
    /// 503 when the store cannot be written.
    pub async fn release(&self, held: &HeldPort) -> Result<bool> {
        let Record { key, revision, value, .. } = Record::clone(&held.record);
        let operation = Operation { key, expect: Expect::Revision(revision), change: Change::Delete(value) };
        self.settle(vec![operation], &held.name).await
    }

    async fn settle(&self, operations: Vec<Operation>, service: &str) -> Result<bool> {
        match self.registry.store().commit(vec![Txn { operations }]).await.pop() {
            Some(Ok(_)) => Ok(true),
            // Somebody was faster: what is there now is looked at again.
            None
            | Some(Err(TxnError::Conflict { .. } | TxnError::NotFound { .. } | TxnError::Exists { .. })) => {
                Ok(false)
            }
            Some(Err(error)) => Err(failure::of_txn(error, &records::port_resource(), service)),
        }
    }
}

/// The content of a record; one that names no port is nobody's.
fn held(record: &Arc<Record>) -> Option<HeldPort> {
    let object = stored::decode(record);
    let service = |field| object.at(&["service", field]).str().to_owned();
    let (namespace, name) = (service("namespace"), service("name"));
    Some(HeldPort { port: object.name().parse().ok()?, namespace, name, record: Arc::clone(record) })
}
