//! A user who must be served while other clients misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use portico_kit::tasks::TaskSet;
use portico_tests::{Portico, wait_until};

/// Maximum time of a request of the bystander, with a margin for busy machines.
const MAX_LATENCY: Duration = Duration::from_secs(2);

/// Sends consecutive requests over a separate connection.
pub(super) struct Bystander {
    tasks: TaskSet,
    stop: Arc<AtomicBool>,
    took: Arc<Mutex<Vec<Duration>>>,
}

impl Bystander {
    /// Starts sending requests.
    pub(super) fn start(portico: &Portico) -> Self {
        let (tasks, stop, took) = (TaskSet::new(), Arc::new(AtomicBool::new(false)), Arc::default());
        let bystander = Self { tasks, stop, took };
        let (admin, stop, took) = (portico.admin(), bystander.stop.clone(), bystander.took.clone());
        bystander.tasks.spawn("bystander", async move {
            let mut connection = admin.connect().await.unwrap();
            // At least one request: a flood may end before another client has been served.
            loop {
                let start = Instant::now();
                let answer = connection.get("/api/v1/namespaces/default").await.unwrap();
                assert_eq!(answer.status, 200);
                took.lock().push(start.elapsed());
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        bystander
    }

    /// Stops, and checks that the slowest percent of the requests was within [`MAX_LATENCY`].
    pub(super) async fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        wait_until("the bystander ends", || std::future::ready(self.tasks.running().is_empty())).await;
        let mut took = std::mem::take(&mut *self.took.lock());
        took.sort_unstable();
        let at = took.len() * 99 / 100;
        let slow = took.get(at).unwrap_or_else(|| panic!("the bystander was not served"));
        assert!(*slow < MAX_LATENCY, "p99 of {} requests: {slow:?}", took.len());
    }
}
