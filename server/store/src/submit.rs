//! The callers' half of a write: refuses what is too large, seals, queues for the writer, and gives each Txn its result.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::error::StoreError;
use crate::latest;
use crate::load::Load;
use crate::read_only;
use crate::seal::Seal;
use crate::txn::{Change, Committed, Operation, Prepared, Txn, TxnError};

/// Bytes of values that one request has at most, but for the last Txn in it.
const REQUEST_BYTES: usize = 4 << 20;

/// The results of Txns, in their order.
pub(crate) type Results = Vec<Result<Committed, TxnError>>;

/// Txns for the writer, at most a group's worth.
pub(crate) struct CommitRequest {
    pub(crate) txns: Vec<Prepared>,
    pub(crate) reply: oneshot::Sender<Results>,
}

impl CommitRequest {
    /// How many operations write something: checks cost next to nothing.
    pub(crate) fn operations(&self) -> usize {
        let all = self.txns.iter().flat_map(|prepared| &prepared.txn.operations);
        all.filter(|operation| !matches!(operation.change, Change::Check)).count()
    }

    /// How many bytes its values have.
    pub(crate) fn bytes(&self) -> usize {
        self.txns.iter().map(Prepared::bytes).sum()
    }
}

/// Gives each request its results. A caller that has gone away does not take its write back.
pub(crate) fn answer(requests: Vec<CommitRequest>, results: Vec<Results>) {
    for (request, results) in requests.into_iter().zip(results) {
        let _gone = request.reply.send(results);
    }
}

/// Queues for a writer that takes requests of this type.
pub(crate) struct Submitter<R> {
    pub(crate) requests: mpsc::Sender<R>,
    pub(crate) seal: Arc<Seal>,
    pub(crate) group_operations: usize,
    /// True if the writer carries out several requests at the same time.
    pub(crate) concurrent: bool,
}

impl<R: From<CommitRequest> + Send> Submitter<R> {
    /// Writes; see [`crate::Store::commit`].
    pub(crate) async fn write(&self, txns: Vec<Txn>, load: &impl Load) -> Results {
        let mut results: Vec<Option<Result<Committed, TxnError>>> = Vec::with_capacity(txns.len());
        let mut accepted = Vec::with_capacity(txns.len());
        for txn in txns {
            let admitted = admit(&txn, load).await;
            match admitted.and_then(|()| prepare(&self.seal, txn)) {
                Ok(prepared) => {
                    accepted.push(prepared);
                    results.push(None);
                }
                Err(error) => results.push(Some(Err(error))),
            }
        }
        let mut written = self.queue(accepted).await.into_iter();
        let lost = || Err(TxnError::Unknown("no response from the writer".to_owned()));
        let results =
            results.into_iter().map(|result| result.or_else(|| written.next()).unwrap_or_else(lost));
        let results: Results = results.collect();
        if results.iter().any(Result::is_err) {
            // Others may have written what it was refused for.
            latest::ask_again();
        }
        results
    }

    /// Queues Txns in requests of at most a group's worth, in their order, and awaits the answers.
    async fn queue(&self, txns: Vec<Prepared>) -> Results {
        let mut answers = Vec::new();
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
            let (reply, answer) = oneshot::channel();
            let sent = self.requests.send(CommitRequest { txns: chunk, reply }.into()).await;
            let answer = sent.is_ok().then_some(answer);
            if self.concurrent {
                results.extend(answered(count, answer).await);
            } else {
                answers.push((count, answer));
            }
        }
        for (count, answer) in answers {
            results.extend(answered(count, answer).await);
        }
        results
    }
}

/// The results of a request of so many Txns.
async fn answered(count: usize, answer: Option<oneshot::Receiver<Results>>) -> Results {
    let failure = match answer {
        None => TxnError::Closed,
        Some(answer) => match answer.await {
            Ok(results) => return results,
            Err(_) => TxnError::Unknown("the writer stopped".to_owned()),
        },
    };
    std::iter::repeat_n(Err(failure), count).collect()
}

/// Refuses what is too large; sees to it that the cache holds what the Txn is checked by.
async fn admit(txn: &Txn, load: &impl Load) -> Result<(), TxnError> {
    too_large(txn)?;
    if let Some(text) = load.unacceptable(txn) {
        return Err(TxnError::TooLarge(text));
    }
    // Whether writes are stopped is looked at with each group.
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

fn too_large(txn: &Txn) -> Result<(), TxnError> {
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

/// Seals the values of a Txn, where they are to be.
fn prepare(seal: &Seal, mut txn: Txn) -> Result<Prepared, TxnError> {
    if !seal.is_active() {
        return Ok(Prepared { txn, sealed: Vec::new() });
    }
    let sealed = txn.operations.iter_mut().map(|operation| sealed(seal, operation));
    let sealed = sealed.collect::<Result<Vec<_>, _>>()?;
    Ok(Prepared { txn, sealed })
}

fn sealed(seal: &Seal, operation: &mut Operation) -> Result<Option<Arc<[u8]>>, TxnError> {
    let Operation { key, change, .. } = operation;
    let (Change::Put(value) | Change::Delete(value)) = change else { return Ok(None) };
    let sealed = seal.seal(key, value.json()).map_err(|error| TxnError::Sealed(error.to_string()))?;
    let Some(sealed) = sealed else { return Ok(None) };
    *value = value.clone().stored_as(sealed.len() + 1);
    Ok(Some(sealed.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Indexed;
    use crate::key::{Key, Resource};
    use crate::record::Value;

    fn prepared(name: &str) -> Prepared {
        let value = Value::new(&b"{}"[..], Indexed::default());
        let key = Key::new(&Resource::new("", "configmaps"), "default", name);
        Prepared { txn: Txn::create(key, value), sealed: Vec::new() }
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
                answer(vec![request], vec![results]);
            }
            at_once
        };
        let (results, at_once) = tokio::join!(written, writer);
        assert_eq!(results.len(), 5);
        at_once
    }

    #[tokio::test]
    async fn requests_of_one_call_follow_one_another_where_a_writer_would_serve_them_at_the_same_time() {
        assert_eq!((queued_at_once(false).await, queued_at_once(true).await), (3, 1));
    }
}
