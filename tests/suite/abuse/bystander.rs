//! A user who is served while others misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use portico_kit::tasks::TaskSet;
use portico_tests::{Portico, until};

/// The longest that a request of somebody else may take: far more than it does, on machines that do other work, too.
const MOST: Duration = Duration::from_secs(2);

/// Sends requests one after another over a connection of its own.
pub(super) struct Bystander {
    tasks: TaskSet,
    stop: Arc<AtomicBool>,
    took: Arc<Mutex<Vec<Duration>>>,
}

impl Bystander {
    /// Begins.
    pub(super) fn of(portico: &Portico) -> Self {
        let (tasks, stop, took) = (TaskSet::new(), Arc::new(AtomicBool::new(false)), Arc::default());
        let bystander = Self { tasks, stop, took };
        let (admin, stop, took) = (portico.admin(), bystander.stop.clone(), bystander.took.clone());
        bystander.tasks.spawn("bystander", async move {
            let mut connection = admin.connect().await.unwrap();
            // Once at least: a flood may end before anybody else has been served.
            loop {
                let begun = Instant::now();
                let answer = connection.get("/api/v1/namespaces/default").await.unwrap();
                assert_eq!(answer.status, 200);
                took.lock().push(begun.elapsed());
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        bystander
    }

    /// Ends, and checks that it was served: the slowest percent within [`MOST`].
    pub(super) async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        until("the bystander ends", || std::future::ready(self.tasks.running().is_empty())).await;
        let mut took = std::mem::take(&mut *self.took.lock());
        took.sort_unstable();
        let at = took.len() * 99 / 100;
        let slow = took.get(at).unwrap_or_else(|| panic!("the bystander was not served"));
        assert!(*slow < MOST, "p99 of {} requests: {slow:?}", took.len());
    }
}
