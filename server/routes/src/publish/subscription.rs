//! One reader's place in the published table.

use tokio::sync::watch;

use super::{Publisher, Update};

/// A reader. It holds no queue of its own: being slow costs it a larger delta, or a new snapshot.
pub struct Subscription {
    publisher: Publisher,
    position: Option<u64>,
    newest: watch::Receiver<u64>,
}

impl Subscription {
    pub(super) fn new(publisher: Publisher, position: Option<u64>, newest: watch::Receiver<u64>) -> Self {
        Self { publisher, position, newest }
    }

    /// What is new, waiting until there is something. The first answer of a reader without a usable version is a
    /// snapshot. Cancel safe.
    pub async fn next(&mut self) -> Update {
        loop {
            self.newest.borrow_and_update();
            if let Some(update) = self.try_next() {
                return update;
            }
            if self.newest.changed().await.is_err() {
                // The publisher lives as long as we hold it.
                std::future::pending::<()>().await;
            }
        }
    }

    /// What is new now, if anything is.
    pub fn try_next(&mut self) -> Option<Update> {
        let (update, position) = self.publisher.read(self.position)?;
        self.position = Some(position);
        Some(update)
    }
}
