//! Requests that continue while a process or a route is removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use portico_kit::tasks::TaskSet;
use portico_tests::objects::API_SERVICES;
use portico_tests::{Backend, Launch, Portico, eventually, wait_until};

const CLIENTS: usize = 8;

/// Clients that fetch a proxied path over persistent connections until they are stopped.
struct Load {
    tasks: TaskSet,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
}

impl Load {
    fn start(portico: &Portico, path: &str) -> Self {
        let load = Self {
            tasks: TaskSet::new(),
            stop: Arc::default(),
            done: Arc::default(),
            failed: Arc::default(),
        };
        for _ in 0..CLIENTS {
            let (http, path) = (portico.admin(), path.to_owned());
            let (stop, done, failed) = (load.stop.clone(), load.done.clone(), load.failed.clone());
            load.tasks.spawn("load", async move {
                let mut connection = http.connect().await.unwrap();
                while !stop.load(Ordering::Relaxed) {
                    match connection.get(&path).await {
                        Ok(answer) if answer.status == 200 => done.fetch_add(1, Ordering::Relaxed),
                        _ => failed.fetch_add(1, Ordering::Relaxed),
                    };
                }
            });
        }
        load
    }

    /// Waits until this many more requests have succeeded.
    async fn wait_for_more(&self, count: usize) {
        let from = self.done.load(Ordering::Relaxed);
        wait_until("requests continue", || {
            std::future::ready(
                self.done.load(Ordering::Relaxed) >= from + count || self.failed.load(Ordering::Relaxed) > 0,
            )
        })
        .await;
    }

    /// Stops the clients; returns the numbers of successful and failed requests.
    async fn stop(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        wait_until("the load ends", || std::future::ready(self.tasks.running().is_empty())).await;
        (self.done.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_proxied_request_fails_over_a_kill_of_the_control_service() {
    let backend = Backend::start("load.example.com").await;
    let mut server = Launch::server().start().await;
    let facade = Launch::facade(&server).start().await;
    facade.admin().post(API_SERVICES, &backend.api_service()).await;
    let path = backend.path("/flunders");
    eventually("the route is served", || async {
        let answer = facade.admin().get(&path).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let load = Load::start(&facade, &path);
    load.wait_for_more(200).await;
    server.kill();
    load.wait_for_more(500).await;
    server.restart().await;
    load.wait_for_more(500).await;
    let (done, failed) = load.stop().await;
    assert_eq!(failed, 0, "of {}", done + failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_proxied_request_fails_while_other_routes_change() {
    let backend = Backend::start("churn.example.com").await;
    let portico = crate::proxying::routed(&backend).await;
    let load = Load::start(&portico, &backend.path("/flunders"));
    for n in 0..30 {
        let object = portico_tests::objects::remote_api_service(&format!("n{n}.churn.example.com"), "", 443);
        assert_eq!(portico.admin().post(API_SERVICES, &object).await.status, 201);
        if n % 2 == 0 {
            portico.admin().delete(&format!("{API_SERVICES}/v1.n{n}.churn.example.com")).await;
        }
    }
    load.wait_for_more(200).await;
    let (done, failed) = load.stop().await;
    assert_eq!(failed, 0, "of {}", done + failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn running_requests_complete_at_shutdown() {
    let backend = Backend::start("drain.example.com").await;
    let mut portico = crate::proxying::routed(&backend).await;
    backend.set_behavior(portico_tests::Behavior::Slow(std::time::Duration::from_secs(1)));
    let (http, path) = (portico.admin(), backend.path("/flunders"));
    let answered = Arc::new(AtomicUsize::new(0));
    let tasks = TaskSet::new();
    let (count, seen) = (answered.clone(), backend.requests().len());
    tasks.spawn("slow", async move {
        if http.get(&path).await.status == 200 {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    wait_until("the backend has received the request", || {
        std::future::ready(backend.requests().len() > seen)
    })
    .await;
    let status = portico.stop().await;
    assert!(status.success(), "{status}");
    wait_until("the client has finished", || std::future::ready(tasks.running().is_empty())).await;
    assert_eq!(answered.load(Ordering::SeqCst), 1, "the request was cut");
}
