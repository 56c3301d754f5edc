//! Switches an open store of this process to read-only mode and back.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::copy::{CopyError, WriteSwitch};
use crate::index::{Indexer, MetadataIndexer};
use crate::read_only;
use crate::record::Value;
use crate::store::Store;
use crate::txn::{Change, Precondition, Txn, TxnError};

/// Read-only switch of a store that this process has open.
pub struct StoreSwitch(pub Arc<dyn Store>);

impl StoreSwitch {
    async fn set(&self, reason: Option<&str>) -> Result<i64, CopyError> {
        let failed = |reason: String| CopyError::Store { place: "the store".to_owned(), reason };
        let json = read_only::record_json(reason.unwrap_or_default());
        let indexed = MetadataIndexer.index(read_only::resource(), &json).map_err(|error| failed(error.0))?;
        let value = Value::new(json, indexed);
        let txn = match reason {
            Some(_) => Txn::create(read_only::key().clone(), value),
            None => Txn::single(read_only::key().clone(), Precondition::Any, Change::Delete(value)),
        };
        match self.0.commit(vec![txn]).await.pop().unwrap_or(Err(TxnError::Closed)) {
            Ok(committed) => Ok(committed.revision),
            Err(TxnError::Exists { current, .. }) => Ok(current.revision),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

impl WriteSwitch for StoreSwitch {
    fn set_read_only<'a>(&'a self, reason: Option<&'a str>) -> BoxFuture<'a, Result<i64, CopyError>> {
        Box::pin(self.set(reason))
    }
}
