//! A counter of work in progress, so that a drain can wait for its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Top bit: the group is closed. The other bits count the tokens.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// A counter that can be closed and waited for. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct WaitGroup {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    state: AtomicUsize,
    empty: Notify,
}

/// Membership in a wait group, which ends when the token is dropped.
#[derive(Debug)]
pub struct Token(Arc<Inner>);

impl WaitGroup {
    /// Joins the group; `None` if it is closed.
    #[must_use]
    pub fn enter(&self) -> Option<Token> {
        let previous = self.inner.state.fetch_add(1, Ordering::AcqRel);
        let token = Token(self.inner.clone());
        // Dropping the token decrements the count again.
        (previous & CLOSED == 0).then_some(token)
    }

    /// Closes the group to new members.
    pub fn close(&self) {
        self.inner.state.fetch_or(CLOSED, Ordering::AcqRel);
        self.inner.empty.notify_waiters();
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.state.load(Ordering::Acquire) & !CLOSED
    }

    /// True if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Resolves when there are no members. Must be called after [`WaitGroup::close`].
    pub async fn drained(&self) {
        loop {
            let notified = self.inner.empty.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.is_empty() {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if self.0.state.fetch_sub(1, Ordering::AcqRel) & !CLOSED == 1 {
            self.0.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_closed_group_accepts_no_member_and_is_drained_by_the_last_one() {
        let group = WaitGroup::default();
        let inside = group.enter().unwrap();
        group.close();
        assert!(group.enter().is_none());
        let drained = group.drained();
        tokio::pin!(drained);
        assert!(drained.as_mut().now_or_never().is_none());
        drop(inside);
        drained.await;
    }
}
