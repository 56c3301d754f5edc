//! Position of one reader in the published table.

use tokio::sync::watch;

use super::{Publisher, TableUpdate};

/// Subscription of a reader. Has no queue: a slow reader gets a larger delta, or a new snapshot.
pub struct TableSubscription {
    publisher: Publisher,
    position: Option<u64>,
    newest: watch::Receiver<u64>,
}

impl TableSubscription {
    pub(super) fn new(publisher: Publisher, position: Option<u64>, newest: watch::Receiver<u64>) -> Self {
        Self { publisher, position, newest }
    }

    /// Waits for the next update. The first update of a reader without a usable version is a snapshot. Cancel safe.
    pub async fn next(&mut self) -> TableUpdate {
        loop {
            self.newest.borrow_and_update();
            if let Some(update) = self.try_next() {
                return update;
            }
            if self.newest.changed().await.is_err() {
                // Not reached while this subscription holds the publisher.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Next update, if there is one now.
    pub fn try_next(&mut self) -> Option<TableUpdate> {
        let (update, position) = self.publisher.read(self.position)?;
        self.position = Some(position);
        Some(update)
    }
}
