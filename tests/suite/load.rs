//! Requests that continue while a process or a route is removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use portico_kit::tasks::TaskSet;
use portico_tests::objects::API_SERVICES;
use portico_tests::{Backend, Launch, Portico, eventually, until};

const CLIENTS: usize = 8;

/// Clients that fetch a proxied path over persistent connections until they are stopped.
struct Load {
    tasks: TaskSet,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
}

impl Load {
    fn on(portico: &Portico, path: &str) -> Self {
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
    async fn more(&self, count: usize) {
        let from = self.done.load(Ordering::Relaxed);
        until("requests go on", || {
            std::future::ready(
                self.done.load(Ordering::Relaxed) >= from + count || self.failed.load(Ordering::Relaxed) > 0,
            )
        })
        .await;
    }

    /// Stops the clients; returns the numbers of successful and failed requests.
    async fn end(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        until("the load ends", || std::future::ready(self.tasks.running().is_empty())).await;
        (self.done.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_proxied_request_fails_when_the_control_service_is_killed_and_comes_back() {
    let backend = Backend::start("load.example.com").await;
    let mut server = Launch::server().start().await;
    let facade = Launch::facade(&server).start().await;
    facade.admin().post(API_SERVICES, &backend.api_service()).await;
    let path = backend.path("/flunders");
    eventually("the route is there", || async {
        let answer = facade.admin().get(&path).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    let load = Load::on(&facade, &path);
    load.more(200).await;
    server.kill();
    load.more(500).await;
    server.restart().await;
    load.more(500).await;
    let (done, failed) = load.end().await;
    assert_eq!(failed, 0, "of {}", done + failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_proxied_request_fails_while_other_routes_come_and_go() {
    let backend = Backend::start("churn.example.com").await;
    let portico = crate::proxying::routed(&backend).await;
    let load = Load::on(&portico, &backend.path("/flunders"));
    for n in 0..30 {
        let object = portico_tests::objects::remote(&format!("n{n}.churn.example.com"), "", 443);
        assert_eq!(portico.admin().post(API_SERVICES, &object).await.status, 201);
        if n % 2 == 0 {
            portico.admin().delete(&format!("{API_SERVICES}/v1.n{n}.churn.example.com")).await;
        }
    }
    load.more(200).await;
    let (done, failed) = load.end().await;
    assert_eq!(failed, 0, "of {}", done + failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_were_begun_are_answered_when_it_is_stopped() {
    let backend = Backend::start("drain.example.com").await;
    let mut portico = crate::proxying::routed(&backend).await;
    backend.behave(portico_tests::Mood::Slow(std::time::Duration::from_secs(1)));
    let (http, path) = (portico.admin(), backend.path("/flunders"));
    let answered = Arc::new(AtomicUsize::new(0));
    let tasks = TaskSet::new();
    let (count, seen) = (answered.clone(), backend.seen().len());
    tasks.spawn("slow", async move {
        if http.get(&path).await.status == 200 {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    until("the request is at the backend", || std::future::ready(backend.seen().len() > seen)).await;
    let status = portico.stop().await;
    assert!(status.success(), "{status}");
    until("the client is done", || std::future::ready(tasks.running().is_empty())).await;
    assert_eq!(answered.load(Ordering::SeqCst), 1, "the request was cut");
}
