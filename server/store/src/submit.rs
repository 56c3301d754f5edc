//! Caller side of a write: checks sizes, seals values, queues the Txns for the writer, and returns their results.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::error::StoreError;
use crate::latest_revision;
use crate::loader::Loader;
use crate::read_only;
use crate::seal::Seal;
use crate::txn::{Change, CommittedTxn, Operation, PreparedTxn, Txn, TxnError};

/// Maximum bytes of the values of one request, not counting its last Txn.
const REQUEST_BYTES: usize = 4 << 20;

/// Results of Txns, in their order.
pub(crate) type Results = Vec<Result<CommittedTxn, TxnError>>;

/// Request to commit Txns, at most as many as fit in a group.
pub(crate) struct CommitRequest {
    pub(crate) txns: Vec<PreparedTxn>,
    pub(crate) reply: oneshot::Sender<Results>,
}

impl CommitRequest {
    /// Returns the number of writing operations; the cost of checks is negligible.
    pub(crate) fn operations(&self) -> usize {
        let operations = self.txns.iter().flat_map(|prepared| &prepared.txn.operations);
        operations.filter(|operation| !matches!(operation.change, Change::Check)).count()
    }

    /// Returns the size of the values in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.txns.iter().map(PreparedTxn::bytes).sum()
    }
}

/// Sends each request its results. A write is not undone if its caller is gone.
pub(crate) fn send_results(requests: Vec<CommitRequest>, results: Vec<Results>) {
    for (request, results) in requests.into_iter().zip(results) {
        let _gone = request.reply.send(results);
    }
}

/// Sends requests of this type to a writer.
pub(crate) struct Submitter<R> {
    pub(crate) requests: mpsc::Sender<R>,
    pub(crate) seal: Arc<Seal>,
    pub(crate) group_operations: usize,
    /// True if the writer executes several requests concurrently.
    pub(crate) concurrent: bool,
}

impl<R: From<CommitRequest> + Send> Submitter<R> {
    /// Commits Txns; see [`crate::Store::commit`].
    pub(crate) async fn write(&self, txns: Vec<Txn>, load: &impl Loader) -> Results {
        let mut results: Vec<Option<Result<CommittedTxn, TxnError>>> = Vec::with_capacity(txns.len());
        let mut accepted = Vec::with_capacity(txns.len());
        for txn in txns {
            let admission = prepare_admission(&txn, load).await;
            match admission.and_then(|()| prepare(&self.seal, txn)) {
                Ok(prepared) => {
                    accepted.push(prepared);
                    results.push(None);
                }
                Err(error) => results.push(Some(Err(error))),
            }
        }
        let mut written = self.queue(accepted).await.into_iter();
        let no_response = || Err(TxnError::InDoubt("no response from the writer".to_owned()));
        let results =
            results.into_iter().map(|result| result.or_else(|| written.next()).unwrap_or_else(no_response));
        let results: Results = results.collect();
        if results.iter().any(Result::is_err) {
            // Another process may have caused the failure: the next read must see its write.
            latest_revision::reset_revision_check();
        }
        results
    }

    /// Queues Txns in order, in requests of at most a group each, and waits for the results.
    async fn queue(&self, txns: Vec<PreparedTxn>) -> Results {
        let mut responses = Vec::new();
        let mut results = Vec::new();
        let mut txns = txns.into_iter().peekable();
        while txns.peek().is_some() {
            let (mut operations, mut bytes) = (0, 0);
            let mut chunk = Vec::new();
            while let Some(prepared) =
                txns.next_if(|_| operations < self.group_operations && bytes < REQUEST_BYTES)
            {
                operations += prepared.txn.operations.len().max(1);
                bytes += prepared.bytes();
                chunk.push(prepared);
            }
            let count = chunk.len();
            let (reply, response) = oneshot::channel();
            let sent = self.requests.send(CommitRequest { txns: chunk, reply }.into()).await;
            let response = sent.is_ok().then_some(response);
            if self.concurrent {
                results.extend(await_results(count, response).await);
            } else {
                responses.push((count, response));
            }
        }
        for (count, response) in responses {
            results.extend(await_results(count, response).await);
        }
        results
    }
}

/// Returns the results of a request with this number of Txns.
async fn await_results(count: usize, response: Option<oneshot::Receiver<Results>>) -> Results {
    let failure = match response {
        None => TxnError::Closed,
        Some(response) => match response.await {
            Ok(results) => return results,
            Err(_) => TxnError::InDoubt("the writer stopped".to_owned()),
        },
    };
    std::iter::repeat_n(Err(failure), count).collect()
}

/// Rejects oversized Txns, and ensures that the cache contains the states that the Txn is checked against.
async fn prepare_admission(txn: &Txn, load: &impl Loader) -> Result<(), TxnError> {
    check_size(txn)?;
    if let Some(text) = load.rejection_reason(txn) {
        return Err(TxnError::TooLarge(text));
    }
    // Each group checks whether the store is read-only.
    let resources = txn.operations.iter().map(|operation| operation.key.resource());
    for resource in resources.chain([read_only::resource()]) {
        let slot = load.cache().slot(resource);
        load.ensure_loaded(&slot).await.map_err(|error| match error {
            StoreError::Closed => TxnError::Closed,
            StoreError::Unavailable(reason) => TxnError::Unavailable(reason),
            StoreError::Sealed { .. } => TxnError::Sealed(error.to_string()),
            error => TxnError::Unavailable(error.to_string()),
        })?;
    }
    Ok(())
}

fn check_size(txn: &Txn) -> Result<(), TxnError> {
    if txn.operations.len() > Txn::MAX_OPERATIONS {
        let text = format!("{} operations, at most {}", txn.operations.len(), Txn::MAX_OPERATIONS);
        return Err(TxnError::TooLarge(text));
    }
    for operation in &txn.operations {
        let (Change::Put(value) | Change::Delete(value)) = &operation.change else { continue };
        let bytes = value.json().len();
        if bytes > Txn::MAX_VALUE_BYTES {
            let text = format!("{}: {bytes} bytes, at most {}", operation.key, Txn::MAX_VALUE_BYTES);
            return Err(TxnError::TooLarge(text));
        }
    }
    Ok(())
}

/// Seals the values of a Txn that rules cover.
fn prepare(seal: &Seal, mut txn: Txn) -> Result<PreparedTxn, TxnError> {
    if !seal.is_active() {
        return Ok(PreparedTxn { txn, sealed_values: Vec::new() });
    }
    let sealed = txn.operations.iter_mut().map(|operation| seal_operation(seal, operation));
    let sealed_values = sealed.collect::<Result<Vec<_>, _>>()?;
    Ok(PreparedTxn { txn, sealed_values })
}

fn seal_operation(seal: &Seal, operation: &mut Operation) -> Result<Option<Arc<[u8]>>, TxnError> {
    let Operation { key, change, .. } = operation;
    let (Change::Put(value) | Change::Delete(value)) = change else { return Ok(None) };
    let sealed = seal.seal(key, value.json()).map_err(|error| TxnError::Sealed(error.to_string()))?;
    let Some(sealed) = sealed else { return Ok(None) };
    *value = value.clone().with_stored_size(sealed.len() + 1);
    Ok(Some(sealed.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Indexed;
    use crate::key::{Key, Resource};
    use crate::record::Value;

    fn prepared(name: &str) -> PreparedTxn {
        let value = Value::new(&b"{}"[..], Indexed::default());
        let key = Key::new(&Resource::new("", "configmaps"), "default", name);
        PreparedTxn { txn: Txn::create(key, value), sealed_values: Vec::new() }
    }

    /// Number of requests that are queued before the first is answered, for five Txns in groups of two.
    async fn queued_at_once(concurrent: bool) -> usize {
        let (requests, mut queued) = mpsc::channel(8);
        let submitter: Submitter<CommitRequest> =
            Submitter { requests, seal: Seal::none(), group_operations: 2, concurrent };
        let written = submitter.queue(["a", "b", "c", "d", "e"].map(prepared).to_vec());
        let writer = async {
            let mut requests = vec![queued.recv().await.unwrap()];
            tokio::task::yield_now().await;
            while let Ok(more) = queued.try_recv() {
                requests.push(more);
            }
            let at_once = requests.len();
            let mut answered = 0;
            while answered < 5 {
                let request = match requests.is_empty() {
                    true => queued.recv().await.unwrap(),
                    false => requests.remove(0),
                };
                let results: Results = request.txns.iter().map(|_| Err(TxnError::Closed)).collect();
                answered += results.len();
                send_results(vec![request], vec![results]);
            }
            at_once
        };
        let (results, at_once) = tokio::join!(written, writer);
        assert_eq!(results.len(), 5);
        at_once
    }

    #[tokio::test]
    async fn requests_of_one_call_are_sequential_if_the_writer_is_concurrent() {
        assert_eq!((queued_at_once(false).await, queued_at_once(true).await), (3, 1));
    }
}
